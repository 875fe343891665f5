"""Adds new records to ``neonctl_async/types.py`` and to the pages of the reference.

A record is public if a method takes or returns it, or if a public record contains it.
``make format`` runs this module.
"""

import ast
import re
from importlib import import_module
from pathlib import Path

from tests.support.methods import public_records

ROOT = Path(__file__).parents[1]
TYPES = ROOT / "neonctl_async" / "types.py"
REFERENCE = ROOT / "docs" / "reference"
ENTRY = re.compile(r"^::: neonctl_async\.(?:types\.)?(\w+)$", re.MULTILINE)
WITHOUT_ENTRY = {"UnsetType"}


def complete_exports() -> dict[str, str]:
    """Add the missing records to ``types.py``. Return the module of each of its names."""
    tree = ast.parse(TYPES.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    known = {name.name: node.module or "" for node in imports for name in node.names}
    kept = {name: module for name, module in known.items() if hasattr(import_module(module), name)}
    exports = kept | {kind.__name__: kind.__module__ for kind in public_records()}
    if exports != known:
        lines = [f"from {module} import {name}" for name, module in exports.items()]
        docstring = ast.get_docstring(tree, clean=False)
        names = [f'    "{name}",' for name in sorted(exports)]
        text = "\n".join([f'"""{docstring}"""', *lines, "__all__ = [", *names, "]\n"])
        TYPES.write_text(text, encoding="utf-8")  # ruff sorts the imports and formats the list
    return exports


def complete_reference(exports: dict[str, str]) -> None:
    """Add the missing records to the page of their module, or to the one of its other records."""
    shown = {path: ENTRY.findall(path.read_text("utf-8")) for path in REFERENCE.glob("*.md")}
    pages = {exports.get(name): path for path, names in shown.items() for name in names}
    for name in sorted({*exports}.difference(WITHOUT_ENTRY, *shown.values())):
        named = REFERENCE / f"{exports[name].rpartition('.')[2]}.md"
        page = named if named in shown else pages[exports[name]]
        with page.open("a", encoding="utf-8") as file:
            file.write(f"\n::: neonctl_async.types.{name}\n")


if __name__ == "__main__":
    complete_reference(complete_exports())
