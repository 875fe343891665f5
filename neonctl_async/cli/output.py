"""The output of commands: records on standard output, messages on standard error."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neonctl_async.cli.labels import printable
from neonctl_async.models.secret import Secret
from neonctl_async.progress import console_on_stderr

T = TypeVar("T")
_UNLIMITED = 10_000
"""The width of a pipe or a file, in columns. It prevents cut and folded lines."""


class Output(StrEnum):
    """The format of standard output."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    RAW = "raw"


@dataclass(frozen=True)
class View(Generic[T]):
    """The columns of a type of record, and the text that ``--output raw`` prints for it.

    The columns in ``whole`` are never folded, even on a narrow screen.
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
        self.errors: Console = console_on_stderr(no_color=no_color or None)
        self._console = Console(no_color=no_color or None)
        if not self._console.file.isatty():
            self._console.width = _UNLIMITED

    def show_list(self, records: Sequence[T], view: View[T]) -> None:
        """Show records, one per line of a table."""
        match self.output:
            case Output.TABLE:
                self._print(_table(records, view))
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
        self.errors.print(Text(printable(message), style), soft_wrap=True)

    def secret(self, secret: Secret) -> str:
        """Return the text to show for a secret."""
        return secret.reveal() if self.show_secrets else str(secret)

    def _encoded(self, record: object) -> bytes:
        return msgspec.json.encode(record, enc_hook=self._plain)

    def _plain(self, value: object) -> object:
        if isinstance(value, Secret):
            return self.secret(value)
        raise NotImplementedError(f"cannot encode a {type(value).__name__}")

    def _print(self, shown: Table | Text) -> None:
        # Captured, because rich would exit the process at a broken pipe.
        with self._console.capture() as captured:
            self._console.print(shown, soft_wrap=isinstance(shown, Text))
        _write("\n".join(line.rstrip() for line in captured.get().splitlines()).encode())


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _table(records: Sequence[T], view: View[T]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in view.columns:
        table.add_column(title, overflow="fold", no_wrap=title in view.whole)
    for record in records:
        table.add_row(*(_cell(of(record)) for of in view.columns.values()))
    return table


def _details(record: T, view: View[T]) -> Text:
    cells = {title: _cell(of(record)) for title, of in view.columns.items()}
    width = max(map(len, cells))
    return Text("\n").join(
        Text.assemble((f"{title:<{width}}  ", "bold"), cell)
        for title, cell in cells.items()
        if cell
    )


def _cell(value: str | Text) -> Text:
    return value if isinstance(value, Text) else Text(printable(value))
