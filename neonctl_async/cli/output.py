"""The output of commands: records on standard output, messages on standard error."""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, TextIO, TypeVar

import msgspec

from neonctl_async.cli.labels import minute_label, moment_label, printable
from neonctl_async.cli.styles import Text
from neonctl_async.cli.tables import fitted, natural, table
from neonctl_async.models.secret import HIDDEN, Secret

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
Cell = str | Text | datetime | None
"""The value of a column. Each format shows a time in its own way, and None as an empty string."""
_CLEAR: Final = "\x1b[H\x1b[J"
"""The escape sequence that clears a terminal."""


class Output(StrEnum):
    """The format of standard output."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    RAW = "raw"


@dataclass(frozen=True)
class View(Generic[T]):
    """The columns for a type of record, and the text that ``--output raw`` prints for a record.

    On a narrow screen, long values are cut, and columns other than those in ``first`` are left out.
    The columns in ``whole`` are never cut.
    """

    columns: Mapping[str, Callable[[T], Cell]]
    raw: Callable[[T], str]
    whole: Collection[str] = ("ID",)
    first: Sequence[str] = ("Name",)

    def with_column(self, title: str, of: Callable[[T], Cell]) -> "View[T]":
        """Return a view with this column added. It replaces a column with the same title."""
        return replace(self, columns={**self.columns, title: of})


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
        self._has_header = False

    @property
    def draws_trees(self) -> bool:
        """True if a list may show a tree: on a terminal, unless its columns are selected."""
        return self.output is Output.TABLE and _width() is not None and not self._columns

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
            case Output.CSV:
                self._write_csv(records, view)
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
                self.show_text(record, view, _details(record, view))
            case Output.JSON | Output.YAML:
                self._write_document(record)
            case _:
                self.show_list([record], view)

    def show_text(self, record: T, view: View[T], text: Text) -> None:
        """Show one record. In place of a table, print ``text``, unless it is empty."""
        if self.output is not Output.TABLE:
            self.show(record, view)
        elif text.plain:
            self._print(text)

    def show_json(self, value: object) -> None:
        """Show a response as JSON or YAML. Show nothing for None, an empty response."""
        if value is None:
            return
        if self.output in {Output.JSONL, Output.RAW}:
            _write(self._encoded(value))
        else:
            self._write_document(value)

    def print_message(self, message: str, style: str = "") -> None:
        """Print a message on standard error, as one line."""
        line = self._shown(Text(printable(message), style), sys.stderr)
        sys.stderr.write(f"{line}\n")

    def secret(self, secret: Secret) -> str:
        """Return the text to show for a secret."""
        return secret.reveal() if self.show_secrets else HIDDEN

    def secret_with_hint(self, secret: Secret) -> str:
        """Return the text to show for a secret. If it is hidden, name the option that shows it."""
        shown = self.secret(secret)
        return shown if self.show_secrets else f"{shown} (--show-secrets shows it)"

    def _show_table(self, records: Sequence[T], view: View[T]) -> None:
        columns = select(view.columns, self._columns)
        width = _width()
        values = [[of(record) for of in columns.values()] for record in records]
        rows = [[_cell(value, in_minutes=width is not None) for value in row] for row in values]
        titles = list(columns)
        widths = natural(titles, rows)
        left_out: list[str] = []
        if width is not None:
            if not self._columns:
                widths = {title: widths[title] for title in _filled(titles, rows)}
            first = titles if self._columns else [one for one in view.first if one in widths]
            shown = fitted(widths, width, whole=(*view.whole, *_times(titles, values)), first=first)
            left_out = [title for title in widths if title not in shown]
            widths = shown
        lines = list(table(titles, rows, widths))
        if self._title is not None:
            # One write, so that the terminal does not flicker.
            title = Text(f"{_CLEAR}{printable(self._title())}\n")
            lines = _fitting([title, *lines], shutil.get_terminal_size().lines - 2)
        self._print(Text("\n").join(lines))
        if left_out:
            message = f"left out at {width} columns: {', '.join(left_out)}; --output csv has all"
            self.print_message(message, "dim")

    def _write_csv(self, records: Sequence[T], view: View[T]) -> None:
        import csv
        import io

        columns = select(view.columns, self._columns)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        if not self._has_header:
            writer.writerow(columns)
            self._has_header = True
        for record in records:
            writer.writerow(_csv_text(of(record)) for of in columns.values())
        _write(lines.getvalue().removesuffix("\n").encode())

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
    """Return the columns with these names, ignoring case. Without names, return all columns.

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
    """Return as many of the first lines as fit, followed by the number of remaining lines."""
    if len(lines) <= height:
        return lines
    shown = lines[: max(height - 1, 1)]
    return [*shown, Text(f"and {len(lines) - len(shown)} more", "dim")]


def _width() -> int | None:
    """Return the width of the terminal, or None for a pipe or a file."""
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


def _cell(value: Cell, *, in_minutes: bool = False) -> Text:
    if isinstance(value, Text):
        return value
    if isinstance(value, datetime):
        return Text(minute_label(value) if in_minutes else moment_label(value))
    return Text(printable(value or ""))


def _csv_text(value: Cell) -> str:
    if isinstance(value, datetime):
        return str(msgspec.to_builtins(value))  # as in JSON
    return _cell(value).plain


def _filled(titles: Sequence[str], rows: Sequence[Sequence[Text]]) -> list[str]:
    """Return the titles of the columns that are not empty; of all columns if there are no rows."""
    return [
        title
        for number, title in enumerate(titles)
        if not rows or any(row[number].plain for row in rows)
    ]


def _times(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the titles of the columns that contain times, which would be useless if cut."""
    return [
        title
        for number, title in enumerate(titles)
        if any(isinstance(row[number], datetime) for row in rows)
    ]
