"""`python -m tests.pictures`: draw the pictures of the pages again."""

from __future__ import annotations

from tests.pages import ROOT
from tests.pictures.drawn import IMAGES, drawn

for name, picture in drawn().items():
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / name).write_text(picture)
    print(f"wrote {(IMAGES / name).relative_to(ROOT)}")
