"""Finds the prose of a file: pages of Markdown; docstrings, comments, messages and test names."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

FENCE = re.compile(r"^ *(```+|~~~+)")
CODE = re.compile(r"(`+)(?!`).+?\1(?!`)", re.DOTALL)
SQL = r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|REPLACE)\s"
# String constants that are no messages: SQL, markup, source code.
NO_MESSAGE = re.compile(rf"\A{SQL}|</|^\s*[<{{]|[{{;]$|^\s*(?:import|from) ", re.MULTILINE)
# Comments that instruct other tools; a reason may follow after a second "#".
DIRECTIVE = re.compile(r"^(?:noqa|type: ignore|pragma|pyright|ruff|mypy|!)\b.*?(?=#|$)")


@dataclass(frozen=True)
class Passage:
    """A piece of prose: its kind, the line it starts at, and its text without code."""

    kind: str
    line: int
    text: str


def passages(path: Path) -> Iterator[Passage]:
    """Yield every piece of prose of a file."""
    source = path.read_text(encoding="utf-8")
    yield from _of_page(source) if path.suffix == ".md" else _of_module(source)


def _of_page(source: str) -> Iterator[Passage]:
    """Yield the page itself, and the comments of its code blocks."""
    prose: list[str] = []
    fence = ""
    for number, line in enumerate(source.splitlines(), 1):
        marker = FENCE.match(line)
        if fence:
            fence = "" if marker and marker[1].startswith(fence) else fence
            comment = re.search(r"(?:^|\s)# (.*)", line)
            if comment and fence:
                yield Passage("comment", number, _without_code(comment[1]))
        elif marker:
            fence = marker[1]
        prose.append("" if fence or marker or line.lstrip().startswith(":::") else line)
    yield Passage("page", 1, _without_code("\n".join(prose)))


def _of_module(source: str) -> Iterator[Passage]:
    yield from _comments(source)
    in_docstring = set[int]()
    tree = ast.parse(source)
    for node in ast.walk(tree):  # docstrings come before the constants inside of them
        match node:
            case ast.Expr(ast.Constant(str(text)) as constant):
                in_docstring.add(id(constant))
                yield Passage("docstring", constant.lineno, _without_code(text))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
                name = node.name.removeprefix("test_").replace("_", " ")
                yield Passage("test name", node.lineno, name)
            case ast.JoinedStr():
                in_docstring.update(map(id, node.values))
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "`x`"
                    for part in node.values
                )
                yield from _message(text, node.lineno)
            case ast.Constant(str(text)) if id(node) not in in_docstring:
                yield from _message(text, node.lineno)
            case _:
                pass


def _message(text: str, line: int) -> Iterator[Passage]:
    """Yield a string constant if it is prose: four words or more, neither SQL nor markup."""
    words = re.findall(r"\b[A-Za-z][a-z']*\b", text)
    if len(words) >= 4 and not NO_MESSAGE.search(text):
        yield Passage("message", line, _without_code(text))


def _comments(source: str) -> Iterator[Passage]:
    """Yield comments; those of successive lines are one."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [token for token in tokens if token.type == tokenize.COMMENT]
    lines: list[str] = []
    for token, following in pairwise([*found, None]):
        assert token is not None
        lines.append(DIRECTIVE.sub("", token.string.lstrip("#").strip()).lstrip("# "))
        own_line = token.line.lstrip().startswith("#")
        goes_with_next = following is not None and following.start == (
            token.start[0] + 1,
            token.start[1],
        )
        if not (own_line and goes_with_next):
            first = token.start[0] - len(lines) + 1
            yield Passage("comment", first, _without_code("\n".join(lines)))
            lines.clear()


def _without_code(text: str) -> str:
    """Remove code, addresses and indentation; keep the line breaks."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1", _blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", _blank, text, flags=re.DOTALL)
    text = re.sub(r"(?<=::\n\n)(?:[ \t]+.*\n|\n)+", _blank, text)  # a literal block of a docstring
    text = re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(?:>>>|\.\.\. |\$ ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r":[a-z]+:(?=`)", "", text)
    text = CODE.sub(lambda code: "`x`" + "\n" * code[0].count("\n"), text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    return re.sub(r"https?://\S+", "`x`", text)


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
