"""The output of commands: records on standard output, messages on standard error."""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

import msgspec

from neonctl_async.cli.labels import printable
from neonctl_async.cli.styles import Text
from neonctl_async.cli.tables import table
from neonctl_async.models.secret import Secret

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")


class Output(StrEnum):
    """The format of standard output."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    RAW = "raw"


@dataclass(frozen=True)
class View(Generic[T]):
    """The columns of a type of record, and the text that ``--output raw`` prints for it.

    A narrow screen cuts long texts, and leaves out columns at the end of the list. The columns in
    ``whole`` are never cut.
    """

    columns: Mapping[str, Callable[[T], str | Text]]
    raw: Callable[[T], str]
    whole: Collection[str] = ("ID",)


class Screen:
    """Standard output and standard error of one command.

    Standard output contains only records. Secrets are hidden unless ``show_secrets`` is set.
    """

    def __init__(self, output: Output, *, no_color: bool = False) -> None:
        self.output = output
        self.show_secrets = False
        self._no_color = no_color

    @cached_property
    def errors(self) -> "Console":
        """The rich console on standard error, for live displays."""
        from neonctl_async.progress import console_on_stderr

        return console_on_stderr(no_color=self._no_color or None)

    def show_list(self, records: Sequence[T], view: View[T]) -> None:
        """Show records, one per line of a table."""
        match self.output:
            case Output.TABLE:
                rows = [[_cell(of(record)) for of in view.columns.values()] for record in records]
                for line in table(list(view.columns), rows, width=_width(), whole=view.whole):
                    self._print(line)
            case Output.JSON:
                _write(msgspec.json.format(self._encoded(records), indent=2))
            case Output.JSONL:
                for record in records:
                    _write(self._encoded(record))
            case Output.RAW:
                for record in records:
                    _write(view.raw(record).encode())

    def show(self, record: T, view: View[T]) -> None:
        """Show one record, one line per column of the view."""
        match self.output:
            case Output.TABLE:
                self._print(_details(record, view))
            case Output.JSON:
                _write(msgspec.json.format(self._encoded(record), indent=2))
            case _:
                self.show_list([record], view)

    def show_next(self, record: T, view: View[T], line: Text) -> None:
        """Show one record of a stream; ``line`` is its text on a terminal."""
        if self.output is Output.TABLE:
            self._print(line)
        else:
            self.show_list([record], view)

    def print_message(self, message: str, style: str = "") -> None:
        """Print a message on standard error, as one line."""
        line = self._shown(Text(printable(message), style), sys.stderr)
        sys.stderr.write(f"{line}\n")

    def secret(self, secret: Secret) -> str:
        """Return the text to show for a secret."""
        return secret.reveal() if self.show_secrets else str(secret)

    def _encoded(self, record: object) -> bytes:
        return msgspec.json.encode(record, enc_hook=self._plain)

    def _plain(self, value: object) -> object:
        if isinstance(value, Secret):
            return self.secret(value)
        raise NotImplementedError(f"cannot encode a {type(value).__name__}")

    def _print(self, line: Text) -> None:
        _write(self._shown(line, sys.stdout).encode())

    def _shown(self, text: Text, stream: TextIO) -> str:
        return text.ansi() if not self._no_color and has_colours(stream) else text.plain


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream shows colours, by the variables that many programs share."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    old_windows = sys.platform == "win32" and "WT_SESSION" not in os.environ
    return stream.isatty() and not old_windows


def _width() -> int | None:
    """Return the width of the terminal, or None for a pipe and a file, which have no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _details(record: T, view: View[T]) -> Text:
    cells = {title: _cell(of(record)) for title, of in view.columns.items()}
    width = max(map(len, cells))
    return Text("\n").join(
        Text(f"{title:<{width}}  ", "bold").append(cell)
        for title, cell in cells.items()
        if cell.plain
    )


def _cell(value: str | Text) -> Text:
    return value if isinstance(value, Text) else Text(printable(value))
