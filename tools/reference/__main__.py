"""``python -m tools.reference`` writes the pages, and removes those of resources that are gone."""

from tools.reference.pages import FOLDER, Pages
from tools.reference.source import Source

texts = Pages(Source()).texts()
FOLDER.mkdir(exist_ok=True)
for page in FOLDER.glob("*.md"):
    if page.name not in texts:
        page.unlink()
for name, text in texts.items():
    (FOLDER / name).write_text(text, encoding="utf-8")
