"""What README and docs show: blocks of code, and commands."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
"""Every page, by its path in the repository."""


def kinds(text: str) -> set[str]:
    """What stands behind the fences of a page; the kind of an indented block is ``indented``."""
    tokens = MarkdownIt().parse(text)
    fences = {token.info.strip() for token in tokens if token.type == "fence"}
    return fences | {"indented" for token in tokens if token.type == "code_block"}


def code_blocks(text: str, kind: str) -> Iterator[tuple[int, str]]:
    """The line and text of each fenced block of a kind in a page."""
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info.strip() == kind and token.map:
            yield token.map[0] + 2, token.content


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command that the consoles of a page show, without a comment, and its output."""
    for _, block in code_blocks(text, "console"):
        for shown in ("\n" + block).split("\n$ ")[1:]:
            command, *output = shown.splitlines()
            yield command.partition(" # ")[0].rstrip(), output


def words(command: str) -> list[str]:
    """What a shell makes of a command, whose output ``$(…)`` may store."""
    return shlex.split(command.partition("$(")[2].rpartition(")")[0] or command)


def compiled(page: Path, line: int, code: str) -> CodeType:
    """A block, which may await; its lines are those of the page."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    block: CodeType = compile("\n" * (line - 1) + code, page, "exec", flags)
    return block


def names_side_by_side(text: str) -> list[tuple[list[str], list[str]]]:
    """The names of each row of a page for those who come from another client: there, and here."""
    table = text[text.index("## Names") : text.index("## What behaves differently")]
    cells = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    there, here = (
        [re.findall(r"`([\w.*]+)`", cell) for cell in side] for side in zip(*cells, strict=True)
    )
    return list(zip(there, here, strict=True))
