"""The schemas of databases. Without Postgres, every database is empty."""

import difflib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.clock import Instant
from neonctl_local.engine import branch_objects, points
from neonctl_local.errors import invalid
from neonctl_local.storage.tables import Branch, Database
from neonctl_local.storage.transactions import Transaction

_EMPTY_DUMP: Final = (
    "--\n-- PostgreSQL database dump\n--\n\n"
    "-- Dumped from database version {version}\n\n"
    "--\n-- PostgreSQL database dump complete\n--\n\n"
)


class SchemaSource(NamedTuple):
    """A database of a branch at a point in time: now, at an instant, or at an LSN."""

    branch_id: str
    database_name: str
    at: Instant | None
    lsn: str | None


class SchemaRead(msgspec.Struct, frozen=True):
    """Schemas to read from real databases. ``respond`` makes the response from the results.

    Each result is the SQL of a schema or, with ``as_tables``, its tables as JSON.
    """

    sources: Sequence[SchemaSource]
    respond: Callable[[list[str]], Response]
    as_tables: bool = False


def get(tx: Transaction, call: Call) -> Response | SchemaRead:
    """``GET .../branches/{branch_id}/schema``: return the schema of a database as SQL or JSON."""
    project, branch = access.branch(tx, call)
    source = _source(tx, call, branch)
    as_tables = call.choice("format", ("sql", "json"), "sql") == "json"
    if tx.rules.postgres is not None:
        return SchemaRead([source], _tables if as_tables else _sql, as_tables)
    if as_tables:
        return _tables(['{"tables":[]}'])
    return _sql([_EMPTY_DUMP.format(version=project.pg_version)])


def compare(tx: Transaction, call: Call) -> Response | SchemaRead:
    """``GET .../branches/{branch_id}/compare_schema``: compare with the parent by default.

    Both branches must have the database. Without Postgres, the difference is always empty.
    """
    project, branch = access.branch(tx, call)
    base_id = call.query.get("base_branch_id") or branch.parent_id
    if base_id is None:
        raise invalid(
            "invalid request: base_branch_id: query parameter required, because branch "
            f"{branch.id!r} has no parent"
        )
    base = access.branch_of(tx, project.id, base_id)
    sources = [_source(tx, call, branch), _source(tx, call, base, "base_")]
    if tx.rules.postgres is not None:
        return SchemaRead(sources, partial(_difference, call.required("db_name")))
    return respond({"diff": ""})


def _source(tx: Transaction, call: Call, branch: Branch, prefix: str = "") -> SchemaSource:
    name = call.required("db_name")
    database = branch_objects.get(tx, Database, branch.id, name)
    lsn, at = call.point_in_time(prefix)
    points.check_time(tx, branch, at, f"{prefix}timestamp")
    return SchemaSource(branch.id, branch_objects.name_at(database, at), at, lsn)


def _sql(schemas: list[str]) -> Response:
    return respond({"sql": schemas[0]})


def _tables(schemas: list[str]) -> Response:
    return respond({"json": msgspec.Raw(schemas[0].encode())})


def _difference(database: str, schemas: list[str]) -> Response:
    branch, base = (schema.splitlines(keepends=True) for schema in schemas)
    diff: Json = {
        "diff": "".join(difflib.unified_diff(base, branch, f"a/{database}", f"b/{database}"))
    }
    return respond(diff)
