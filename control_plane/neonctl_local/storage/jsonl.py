"""The content of a data file as JSON lines: export and import.

The first line contains the number of the schema, and the last line the number of rows. Each line in
between contains one row of a table. A value of a BLOB column is written in Base64.
"""

import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from neonctl_local.storage import schema
from neonctl_local.storage.data_files import connect_reader, new_file
from neonctl_local.storage.locks import lock_data_file
from neonctl_local.storage.rows import SqlValue

FORMAT: Final = "neonctl_local data"
VERSION: Final = 1
"""The version of this format. The schema of the rows has its own number."""
_COUNTERS: Final = "sqlite_sequence"
"""SQLite's table of the last id in each table, which keeps SQLite from reusing an id."""

JsonValue = str | int | float | None


class Summary(msgspec.Struct, frozen=True):
    """The number of rows, and whether they describe real databases, whose data is not exported."""

    rows: int
    has_databases: bool


class _Header(msgspec.Struct, frozen=True):
    format: str
    version: int
    schema: int


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of a table or, in the last line, the number of rows."""

    table: str | None = None
    row: dict[str, JsonValue] = {}
    rows: int | None = None


class _Table:
    """The columns of a table, and the statements that read and insert rows."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (name,))
        types: dict[str, str] = dict(columns.fetchall())
        self.name = name
        self.columns = list(types)
        self.blobs = [name for name, kind in types.items() if kind == "BLOB"]
        names = ", ".join(f'"{name}"' for name in types)
        marks = ", ".join("?" * len(types))
        order = "name" if name == _COUNTERS else "rowid"
        self.selection = f'SELECT {names} FROM "{name}" ORDER BY {order}'
        self.insertion = f'INSERT INTO "{name}" ({names}) VALUES ({marks})'

    def encode(self, values: Iterable[SqlValue]) -> bytes:
        """Return the line for a row."""
        row = dict(zip(self.columns, values, strict=True))
        for name in self.blobs:
            value = row[name]
            row[name] = b64encode(value).decode() if isinstance(value, bytes) else value
        return msgspec.json.encode({"table": self.name, "row": row}) + b"\n"

    def decode(self, row: Mapping[str, JsonValue]) -> list[SqlValue]:
        """Return the values of a row. Raise ValueError unless it has the columns of the table."""
        if set(row) != set(self.columns):
            different = ", ".join(sorted(set(row) ^ set(self.columns)))
            raise ValueError(f"a row of {self.name!r} has missing or unknown columns: {different}")
        values: dict[str, SqlValue] = dict(row)
        for name in self.blobs:
            value = row[name]
            values[name] = b64decode(value, validate=True) if isinstance(value, str) else value
        return [values[name] for name in self.columns]


def export_data(path: Path, output: BinaryIO) -> Summary:
    """Write all rows of a data file as they are at one moment, even if a server is using the file.

    Raises RuntimeError if the file cannot be read. An error that ``output`` raises is not caught.
    """
    if not path.is_file():
        raise RuntimeError(f"cannot export {path}: there is no such file")
    try:
        with closing(connect_reader(path)) as connection:
            connection.execute("BEGIN")
            return _write(connection, output)
    except (sqlite3.Error, ValueError) as error:
        raise RuntimeError(f"cannot export {path}: {error}") from error


def import_data(path: Path, lines: Iterable[bytes]) -> Summary:
    """Create a data file in the newest schema from exported lines: completely, or not at all.

    Raises RuntimeError if the file contains data already, or if the lines are not a complete
    export.
    """
    lock = lock_data_file(path)
    try:
        with new_file(path) as connection:
            return _read(connection, iter(lines))
    except (sqlite3.Error, OSError, ValueError) as error:
        raise RuntimeError(f"cannot import into {path}: {error}") from error
    finally:
        lock.release()


def _write(connection: sqlite3.Connection, output: BinaryIO) -> Summary:
    version = schema.version_of(connection)
    if version == 0:
        raise ValueError("it is empty: name the data file of a server")
    header = _Header(format=FORMAT, version=VERSION, schema=version)
    output.write(msgspec.json.encode(header) + b"\n")
    rows = 0
    for table in _tables(connection):
        for values in connection.execute(table.selection):
            output.write(table.encode(values))
            rows += 1
    output.write(msgspec.json.encode(_Line(rows=rows)) + b"\n")
    output.flush()
    return Summary(rows, _has_databases(connection))


def _read(connection: sqlite3.Connection, lines: Iterator[bytes]) -> Summary:
    schema.migrate(connection, _schema_of(next(lines, b"")))
    connection.execute("PRAGMA foreign_keys = OFF")  # a row may come before one that it refers to
    connection.execute("BEGIN")
    rows = _insert_all(connection, lines)
    schema.check_references(connection)
    connection.execute("COMMIT")
    if schema.version_of(connection) != schema.newest():
        schema.migrate(connection, schema.newest())
    return Summary(rows, _has_databases(connection))


def _schema_of(line: bytes) -> int:
    """Return the number of the schema in the first line. Raise ValueError if there is none."""
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.DecodeError as error:
        raise ValueError(f"line 1 is not the first line of an export: {error}") from None
    if (header.format, header.version) != (FORMAT, VERSION):
        raise ValueError(
            f"line 1 has the format {header.format!r}, version {header.version}, and this version"
            f" of neonctl-async reads {FORMAT!r}, version {VERSION}: export the data file again, or"
            " start with a new one if an unreleased version wrote it"
        )
    if not 1 <= header.schema <= schema.newest():
        raise ValueError(
            f"the export has schema {header.schema}, and this version of neonctl-async has schemas "
            f"up to {schema.newest()}: install the newer version"
        )
    return header.schema


def _insert_all(connection: sqlite3.Connection, lines: Iterator[bytes]) -> int:
    """Insert the rows, and return their number. Raise ValueError if the last line is missing."""
    tables: dict[str | None, _Table] = {table.name: table for table in _tables(connection)}
    decode = msgspec.json.Decoder(_Line).decode
    for number, text in enumerate(lines, start=2):
        try:
            line = decode(text)
            if line.rows is not None:
                return _check_end(line.rows, number - 2, lines)
            _insert(connection, tables, line)
        except (msgspec.DecodeError, ValueError, OverflowError, sqlite3.Error) as error:
            raise ValueError(f"line {number}: {error}") from error
    raise ValueError("the last line is missing: the export is incomplete")


def _check_end(expected: int, found: int, lines: Iterator[bytes]) -> int:
    if expected != found:
        raise ValueError(f"the export has {found} rows instead of {expected}")
    if next(lines, None) is not None:
        raise ValueError("a line follows the last line of the export")
    return found


def _insert(
    connection: sqlite3.Connection, tables: Mapping[str | None, _Table], line: _Line
) -> None:
    table = tables.get(line.table)
    if table is None:
        raise ValueError(f"there is no table {line.table!r}")
    values = table.decode(line.row)
    if table.name == _COUNTERS:  # inserting the other rows has set counters
        connection.execute(f"DELETE FROM {_COUNTERS} WHERE name = ?", (line.row["name"],))
    connection.execute(table.insertion, values)


def _tables(connection: sqlite3.Connection) -> list[_Table]:
    """Return all tables, with the table of counters at the end."""
    names = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
        "ORDER BY name"
    )
    return [_Table(connection, name) for name in (*(row[0] for row in names), _COUNTERS)]


def _has_databases(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM operations WHERE work IS NOT NULL").fetchone()
    return found is not None
