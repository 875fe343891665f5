"""The rules: words to avoid, how docstrings start, how long a sentence is."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tools.prose.passages import Passage

OPENING = re.compile(
    r"(?:What|Whose|Whom?|Where|Which|Why|That|How|When|If|Whether)\b", re.IGNORECASE
)
# Sentences end at a full stop, an empty line, a colon that ends a line, the next list item, or the
# border of a table cell.
SENTENCE_END = re.compile(
    r"(?<=[.!?])[)\"'*_]*\s+(?=[\"'(*_`A-Z\d])|\n\s*\n|:\s*\n|\n(?=(?:[-*+#>]|\d+\.)\s)|\n(?=\|)|\s\|\s"
)


@dataclass(frozen=True)
class Hit:
    """A place that breaks a rule."""

    line: int
    rule: str
    message: str


class Rules:
    """The word list with its exceptions, read from a TOML file."""

    def __init__(self, path: Path) -> None:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
        self.folders: list[str] = settings["folders"]
        self.pages: list[str] = settings["pages"]
        self._limit: int = settings["longest_sentence"]
        self._allowed: list[dict[str, str]] = settings.get("allow", [])
        self._words = [
            (re.compile(rf"\b(?:{_any_space(word['pattern'])})", re.IGNORECASE), word["write"])
            for word in settings["word"]
        ]
        self.used = set[int]()

    def check(self, passage: Passage, path: str) -> Iterator[Hit]:
        """Yield each place of a passage that breaks a rule."""
        text = self._without_allowed(passage.text, path)
        for pattern, instead in self._words:
            for found in pattern.finditer(text):
                words = " ".join(found[0].split())
                line = passage.line + text.count("\n", 0, found.start())
                yield Hit(line, "word", f'"{words}" in a {passage.kind}: write {instead}')
        if passage.kind == "docstring" and (opening := OPENING.match(text.lstrip())):
            message = f'a docstring starts with "{opening[0]}": start with a verb or a noun phrase'
            yield Hit(passage.line, "opening", message)
        if passage.kind in {"docstring", "page"}:
            yield from self._long_sentences(passage, text)

    def unused(self) -> Iterator[str]:
        """Yield each exception that no passage needed so far."""
        for number, allowed in enumerate(self._allowed):
            if number not in self.used:
                yield f'the exception "{allowed["phrase"]}" of {allowed["path"]} is not needed'

    def _without_allowed(self, text: str, path: str) -> str:
        for number, allowed in enumerate(self._allowed):
            if fnmatch(path, allowed["path"]):
                phrase = re.escape(allowed["phrase"]).replace(r"\ ", r"\s+")
                text, count = re.subn(phrase, _blank, text)
                if count:
                    self.used.add(number)
        return text

    def _long_sentences(self, passage: Passage, text: str) -> Iterator[Hit]:
        start = 0
        for end in [*(found.end() for found in SENTENCE_END.finditer(text)), len(text)]:
            sentence, offset = text[start:end], start
            start = end
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > self._limit and not sentence.lstrip().startswith("|"):
                first = offset + len(sentence) - len(sentence.lstrip())
                line = passage.line + text.count("\n", 0, first)
                message = f'a sentence of {len(words)} words ("{" ".join(words[:5])} …"): split it'
                yield Hit(line, "sentence", message)


def _any_space(pattern: str) -> str:
    return pattern.replace(" ", r"\s")


def _blank(found: re.Match[str]) -> str:
    return "`x`" + "\n" * found[0].count("\n")
