"""Reads the code blocks and commands of README and docs."""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "control_plane" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
"""The text of every page, by its path in the repository."""


@cache
def parsed(text: str) -> Sequence[Token]:
    """Return the tokens of a page."""
    return MarkdownIt().parse(text)


def kinds(text: str) -> set[str]:
    """Return the info strings of all fenced blocks; ``indented`` stands for indented blocks."""
    fences = {token.info.strip() for token in parsed(text) if token.type == "fence"}
    return fences | {"indented" for token in parsed(text) if token.type == "code_block"}


def code_blocks(text: str, kind: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each fenced block of a kind."""
    for token in parsed(text):
        if token.type == "fence" and token.info.strip() == kind and token.map:
            yield token.map[0] + 2, token.content


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the ``console`` blocks, without its comment, and its output.

    A command may continue after a backslash at the end of a line.
    """
    for _, block in code_blocks(text, "console"):
        for entry in ("\n" + block).split("\n$ ")[1:]:
            command, *output = entry.replace("\\\n", "").splitlines()
            yield command.partition(" # ")[0].rstrip(), output


def words(command: str) -> list[str]:
    """Split a command as a shell does. ``name=$(…)`` counts as the command inside."""
    return shlex.split(command.partition("$(")[2].rpartition(")")[0] or command)


def compiled(page: Path, line: int, code: str) -> CodeType:
    """Compile a block with the line numbers of its page. It may use ``await``."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    block: CodeType = compile("\n" * (line - 1) + code, page, "exec", flags)
    return block


def names_side_by_side(text: str, heading: str = "## Names") -> list[tuple[list[str], list[str]]]:
    """Return the names in each row of the first table below a heading.

    The names are those of the other program, and those of this one.
    """
    section = text[text.index(f"{heading}\n") :].partition("\n## ")[0]
    cells = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    theirs, ours = (
        [re.findall(r"`([^`]+)`", cell) for cell in side] for side in zip(*cells, strict=True)
    )
    return list(zip(theirs, ours, strict=True))
