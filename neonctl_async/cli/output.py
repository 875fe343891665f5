"""The output of commands: records on standard output, messages on standard error."""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, TextIO, TypeVar

import msgspec

from neonctl_async.cli.labels import printable
from neonctl_async.cli.styles import Text
from neonctl_async.cli.tables import table
from neonctl_async.models.secret import Secret

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
_CLEAR: Final = "\x1b[H\x1b[J"
"""The code that clears a terminal."""


class Output(StrEnum):
    """The format of standard output."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    RAW = "raw"


@dataclass(frozen=True)
class View(Generic[T]):
    """The columns of a type of record, and the text that ``--output raw`` prints for it.

    On a narrow screen, long texts are cut, and columns at the end of the list are left out. The
    columns in ``whole`` are never cut.
    """

    columns: Mapping[str, Callable[[T], str | Text]]
    raw: Callable[[T], str]
    whole: Collection[str] = ("ID",)


class Screen:
    """Standard output and standard error of one command.

    Standard output contains only records. Secrets are hidden unless ``show_secrets`` is set.
    ``columns`` selects columns of lists. With ``title``, each list replaces the previous one on the
    terminal, below this title.
    """

    def __init__(
        self,
        output: Output,
        *,
        no_color: bool = False,
        columns: Sequence[str] = (),
        title: Callable[[], str] | None = None,
    ) -> None:
        self.output = output
        self.show_secrets = False
        self._no_color = no_color
        self._columns = columns
        self._title = title

    @cached_property
    def errors(self) -> "Console":
        """The rich console on standard error, for live displays."""
        from neonctl_async.progress import console_on_stderr

        return console_on_stderr(no_color=self._no_color or None)

    def show_list(self, records: Sequence[T], view: View[T]) -> None:
        """Show records, one per line of a table."""
        match self.output:
            case Output.TABLE:
                self._show_table(records, view)
            case Output.JSON | Output.YAML:
                self._write_document(records)
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
            case Output.JSON | Output.YAML:
                self._write_document(record)
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

    def secret_with_hint(self, secret: Secret) -> str:
        """Return the text to show for a secret. If it is hidden, name the option that shows it."""
        shown = self.secret(secret)
        return shown if self.show_secrets else f"{shown} (--show-secrets shows it)"

    def _show_table(self, records: Sequence[T], view: View[T]) -> None:
        shown = select(view.columns, self._columns)
        rows = [[_cell(of(record)) for of in shown.values()] for record in records]
        lines = list(
            table(list(shown), rows, width=_width(), whole=view.whole, keep_all=bool(self._columns))
        )
        if self._title is not None:
            # One write, so that the terminal does not flicker.
            title = Text(f"{_CLEAR}{printable(self._title())}\n")
            lines = _fitting([title, *lines], shutil.get_terminal_size().lines - 2)
        self._print(Text("\n").join(lines))

    def _write_document(self, value: object) -> None:
        encoded = self._encoded(value)
        if self.output is Output.YAML:
            from msgspec import yaml  # imports PyYAML

            _write(yaml.encode(msgspec.json.decode(encoded)).rstrip(b"\n"))
        else:
            _write(msgspec.json.format(encoded, indent=2))

    def _encoded(self, record: object) -> bytes:
        return msgspec.json.encode(record, enc_hook=self._plain)

    def _plain(self, value: object) -> object:
        if isinstance(value, Secret):
            return self.secret(value)
        raise NotImplementedError(f"cannot encode a {type(value).__name__}")

    def _print(self, text: Text) -> None:
        _write(self._shown(text, sys.stdout).encode())

    def _shown(self, text: Text, stream: TextIO) -> str:
        return text.ansi() if not self._no_color and has_colours(stream) else text.plain


def select(columns: Mapping[str, T], names: Sequence[str]) -> Mapping[str, T]:
    """Return the columns with these names, ignoring case; all columns without names.

    Raises ValueError for an unknown name.
    """
    titles = {title.lower(): title for title in columns}
    for name in names:
        if name.lower() not in titles:
            raise ValueError(
                f"--columns names {name!r}, which is no column: choose from {', '.join(columns)}"
            )
    return {titles[name.lower()]: columns[titles[name.lower()]] for name in names} or columns


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream shows colours, according to the usual environment variables."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    old_windows = sys.platform == "win32" and "WT_SESSION" not in os.environ
    return stream.isatty() and not old_windows


def _fitting(lines: list[Text], height: int) -> list[Text]:
    """Return the first lines, as many as fit, and the number of the others."""
    if len(lines) <= height:
        return lines
    shown = lines[: max(height - 1, 1)]
    return [*shown, Text(f"and {len(lines) - len(shown)} more", "dim")]


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
