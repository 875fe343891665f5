"""The code that README and docs show."""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from markdown_it import MarkdownIt


def code_blocks(text: str, language: str) -> Iterator[tuple[int, str]]:
    """The line and text of each fenced block of a language in a page."""
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info.strip() == language and token.map:
            yield token.map[0] + 2, token.content


def compiled(page: Path, line: int, code: str) -> CodeType:
    """A block, which may await; its lines are those of the page."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    block: CodeType = compile("\n" * (line - 1) + code, page, "exec", flags)
    return block
