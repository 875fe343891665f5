"""Checks the English of docs, docstrings, comments, messages and test names."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.prose.passages import passages
from tools.prose.rules import Hit, Rules

SUFFIXES = frozenset({".md", ".py"})
EPILOG = """\
Prints "path:line: message" for each place that breaks a rule, and exits with status 1 if there is
any. Three rules: the words of words.toml, which names a replacement for each; docstrings start with
a verb or a noun phrase, not with "What", "Whose", "Where", "That", "How", "When" or "Whether"; no
sentence of a page or docstring is longer than the limit in words.toml. Code in backticks is not
checked. Exceptions are [[allow]] tables of words.toml; each has a reason.
"""


def main(arguments: list[str] | None = None) -> int:
    """Print the hits; return the exit status."""
    parser = argparse.ArgumentParser("python -m tools.prose", None, __doc__, EPILOG)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; default: all")
    parser.add_argument("--count", action="store_true", help="print the hits per folder only")
    options = parser.parse_args(arguments)
    for path in options.paths:
        if not path.is_dir() and not (path.is_file() and path.suffix in SUFFIXES):
            parser.error(f"{path} is neither a folder nor a file of Markdown or Python")
    rules = Rules(Path(__file__).with_name("words.toml"))
    roots = options.paths or [Path(name) for name in (*rules.folders, *rules.pages)]
    hits = [(path, hit) for path in sorted(_files(roots)) for hit in _hits(rules, path)]
    complaints = [] if options.paths else [f"words.toml: {line}" for line in rules.unused()]
    if options.count:
        counts = Counter((str(path.parent), hit.rule) for path, hit in hits)
        complaints += [f"{count:5} {rule:8} {folder}" for (folder, rule), count in counts.items()]
        complaints += [f"{len(hits):5} in all"] if hits else []
    else:
        complaints += [f"{path}:{hit.line}: {hit.message}" for path, hit in hits]
    sys.stdout.writelines(f"{line}\n" for line in complaints)
    return 1 if complaints else 0


def _hits(rules: Rules, path: Path) -> list[Hit]:
    name = os.path.relpath(path)
    found = (hit for passage in passages(path) for hit in rules.check(passage, name))
    return sorted(found, key=lambda hit: hit.line)


def _files(roots: list[Path]) -> Iterator[Path]:
    for root in roots:
        if root.is_file():
            yield root
        else:
            yield from (path for path in root.rglob("*") if path.suffix in SUFFIXES)


if __name__ == "__main__":
    sys.exit(main())
