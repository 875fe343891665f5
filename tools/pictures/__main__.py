"""Redraws the pictures of docs/waiting.md and docs/polling.md; run by ``make pictures``."""

from pathlib import Path

from tools.pictures.scenes import pictures

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"

if __name__ == "__main__":
    for name, svg in pictures().items():
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
