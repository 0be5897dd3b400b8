"""Every picture in docs/images/ that is drawn from figures, by its file's name."""

from __future__ import annotations

from tests.pages import DOCS
from tests.pictures.exchanges import api_outage, cable, power_cycle
from tests.pictures.overview import overview

IMAGES = DOCS / "images"


def drawn() -> dict[str, str]:
    return {
        "overview.svg": overview(),
        "cable-pulled.svg": cable().draw(),
        "api-outage.svg": api_outage().draw(),
        "power-cycle.svg": power_cycle().draw(),
    }
