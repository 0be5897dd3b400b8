"""Programs that feed hostile input by the million; a short run of each is part of the suite."""
