"""Read tenants from CSV or JSONL."""

import csv
from collections.abc import Callable, Collection, Iterable, Mapping
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any, Final

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.tenants import EXPECTED, Tenant, check

_FIELDS: Final = ", ".join(EXPECTED)
_REQUIRED: Final = ("project", "branch")


def read_tenants(path: str | PathLike[str]) -> list[Tenant]:
    """Read tenants from a file: ``.csv`` for CSV, ``.jsonl`` or ``.ndjson`` for JSONL.

    Blocks while reading: call it before the event loop starts, or in ``asyncio.to_thread``. Raises
    FleetError with the number of each line that has a problem, and OSError if the file cannot be
    read.
    """
    file = Path(path)
    parse = _PARSERS.get(file.suffix.lower())
    if parse is None:
        raise FleetError(
            [f"the name of the file is {shorten(file.name)}: expected a name in .csv or .jsonl"]
        )
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FleetError(
            [f"{file.name}, line {line}: it is not UTF-8: save the file as UTF-8"]
        ) from None
    return parse(StringIO(text, newline=""), source=file.name)


def tenants_from_csv(lines: Iterable[str], *, source: str = "CSV") -> list[Tenant]:
    """Return the tenants in the lines of a CSV file. The first line names the columns.

    The columns are the fields of :class:`Tenant`, in any order. An empty cell leaves its field
    unset. ``source`` is the name of the file in errors. Raises FleetError as :func:`read_tenants`
    does.
    """
    rows = csv.DictReader(lines, restval="", restkey="", skipinitialspace=True, strict=True)
    parsed = _Parsed(source)
    last = 0
    try:
        columns = rows.fieldnames or []
        if parsed.check_names(1, columns):
            parsed.check_columns(columns)
        parsed.raise_problems()
        last = rows.line_num
        for row in rows:
            if "" in row:
                expected, found = len(columns), len(columns) + len(row[""])
                parsed.note(rows.line_num, f"it has {found} cells: expected {expected}")
            else:
                cells = {name: cell.strip() for name, cell in row.items()}
                parsed.add(rows.line_num, {k: v for k, v in cells.items() if v}, strict=False)
            last = rows.line_num
    except csv.Error as error:
        parsed.note(last + 1, f"it is not CSV: {error}")
    return parsed.tenants()


def tenants_from_jsonl(lines: Iterable[str], *, source: str = "JSONL") -> list[Tenant]:
    """Return the tenants in the lines of a JSONL file, one JSON object per line.

    The objects contain the fields of :class:`Tenant`. A null leaves its field unset. ``source`` is
    the name of the file in errors. Raises FleetError as :func:`read_tenants` does.
    """
    parsed = _Parsed(source)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            parsed.note(number, f"it is {shorten(line.strip())}: expected a JSON object")
            continue
        set_fields = {name: value for name, value in record.items() if value is not None}
        if parsed.check_names(number, set_fields):
            parsed.add(number, set_fields, strict=True)
    return parsed.tenants()


_PARSERS: Final[Mapping[str, Callable[..., list[Tenant]]]] = {
    ".csv": tenants_from_csv,
    ".jsonl": tenants_from_jsonl,
    ".ndjson": tenants_from_jsonl,
}


class _Parsed:
    """The tenants and the problems of a file."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tenants: list[Tenant] = []
        self._lines: dict[tuple[str, str], int] = {}
        self._problems: list[str] = []

    def tenants(self) -> list[Tenant]:
        """Return the tenants. Raises FleetError if there are problems."""
        self.raise_problems()
        return self._tenants

    def raise_problems(self) -> None:
        """Raise FleetError if there are problems."""
        if self._problems:
            raise FleetError(self._problems)

    def note(self, line: int, problem: str) -> None:
        """Record a problem in a line."""
        self._problems.append(f"{self._source}, line {line}: {problem}")

    def check_names(self, line: int, names: Iterable[str]) -> bool:
        """Return whether all names are fields. Record unknown and repeated names."""
        seen: set[str] = set()
        for name in names:
            if name not in EXPECTED:
                self.note(line, f"the field {shorten(name)} is unknown: expected {_FIELDS}")
            elif name in seen:
                self.note(line, f"the field {name} occurs twice: expected it once")
            seen.add(name)
        return seen <= EXPECTED.keys()

    def check_columns(self, columns: Collection[str]) -> None:
        """Record the required columns that a CSV file lacks."""
        for name in _REQUIRED:
            if name not in columns:
                self.note(1, f"the column {name} is missing: expected {EXPECTED[name]}")

    def add(self, line: int, values: Mapping[str, object], *, strict: bool) -> None:
        """Add the tenant of a line, or record its problems."""
        fields: dict[str, Any] = {}
        problems: list[str] = []
        for name in dict.fromkeys((*_REQUIRED, *values)):
            try:
                fields[name] = _field(name, values, strict=strict)
            except ValueError as error:
                problems.append(str(error))
        if not problems:
            try:
                self._add_new(line, Tenant(**fields))
            except ValueError as error:
                problems.append(str(error))
        for problem in problems:
            self.note(line, problem)

    def _add_new(self, line: int, tenant: Tenant) -> None:
        first = self._lines.setdefault((tenant.project, tenant.branch), line)
        if first != line:
            raise ValueError(
                f"branch {shorten(tenant.branch)} of project {shorten(tenant.project)} is also in "
                f"line {first}: expected it once"
            )
        self._tenants.append(tenant)


def _field(name: str, values: Mapping[str, object], *, strict: bool) -> object:
    """Return the converted value of a field. Raises ValueError if it is missing or invalid."""
    if name not in values:
        raise ValueError(f"{name} is missing: expected {EXPECTED[name]}")
    return check(name, values[name], strict=strict)
