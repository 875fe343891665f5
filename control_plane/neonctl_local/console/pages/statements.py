"""The SQL page: runs one statement on a branch, and shows its rows."""

import time
from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import web

from neonctl_local.console.branch_tree import BranchName, read_names
from neonctl_local.console.pages import databases
from neonctl_local.console.pages.requests import shown_seconds
from neonctl_local.console.records import ConnectionUri, Project, ProjectFound
from neonctl_local.console.sql.session import Result, Value
from neonctl_local.console.sql.statements import (
    BOUNDS,
    STATEMENT_SECONDS,
    Place,
    place_of,
    run_statement,
)
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, invalid, not_found
from neonctl_local.postgres.client.messages import Column, PostgresMessage
from neonctl_local.postgres.client.session import StatementError
from neonctl_local.server.connections import while_connected

READ_ONLY: Final = "25006"
"""The SQLSTATE of a statement that would change data in a read-only transaction."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The branch, database and role that a person has chosen, and the alternatives."""

    project: Project
    branches: Sequence[BranchName]
    branch: BranchName
    databases: Sequence[str]
    roles: Sequence[str]
    database: str
    role: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a statement, as the page shows it."""

    columns: Sequence[Column] | None
    rows: Sequence[Sequence[Value]]
    status: str
    has_more: bool
    notices: Sequence[PostgresMessage]
    duration: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The error of a statement, and its place in the statement."""

    error: PostgresMessage
    place: Place | None
    is_change: bool


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/projects/{project_id}/sql``. The query parameter ``branch`` is optional."""
    return await _show(visit, visit.query.get("branch", ""))


async def run(visit: Visit) -> web.StreamResponse:
    """``POST /console/projects/{project_id}/sql``: run a statement, or choose another branch."""
    wanted = visit.form.get("branch", "")
    if visit.form.get("do") == "choose" or visit.state.databases is None:
        return await _show(visit, wanted)
    try:
        choice = await _read_choice(visit, wanted)
        sql = visit.typed("sql")
        if not sql.strip():
            raise invalid("the statement is empty: enter one")
        _check_same(visit, choice)
        uri = await _connection_uri(visit, choice)
    except ApiError as error:
        return await _show(visit, "" if error.status == 404 else wanted, error=error)
    started = time.perf_counter()
    try:
        result = await while_connected(
            visit.request,
            run_statement(uri, sql, allows_changes="changes" in visit.form),
        )
    except StatementError as error:
        failure = Failure(
            error=error.message,
            place=place_of(error.message, sql),
            is_change=error.message.sqlstate == READ_ONLY,
        )
        return _page(visit, choice, failure=failure, status=422)
    return _page(visit, choice, outcome=_outcome(result, time.perf_counter() - started))


async def _show(visit: Visit, wanted: str, *, error: ApiError | None = None) -> web.StreamResponse:
    try:
        choice = await _read_choice(visit, wanted)
    except ApiError as problem:
        if not wanted or problem.status != 404 or error is not None:
            raise
        # The branch does not exist. The project does, or the next call raises too.
        return await _show(visit, "", error=problem)
    return _page(visit, choice, error=error)


def _page(
    visit: Visit,
    choice: Choice,
    *,
    error: ApiError | None = None,
    outcome: Outcome | None = None,
    failure: Failure | None = None,
    status: int | None = None,
) -> web.StreamResponse:
    return visit.page(
        "sql.html",
        error=error,
        status=status,
        project=choice.project,
        choice=choice,
        outcome=outcome,
        failure=failure,
        has_postgres=visit.state.databases is not None,
        seconds=STATEMENT_SECONDS,
        most_rows=BOUNDS.rows,
        allows_changes="changes" in visit.form,
    )


async def _read_choice(visit: Visit, wanted: str) -> Choice:
    project_id = visit.path["project_id"]
    found = await visit.call("GET /projects/{project_id}", ProjectFound, project_id=project_id)
    branches = await visit.read(read_names, project_id)
    branch = _find(branches, wanted)
    objects = await databases.read(visit, project_id, branch.id)
    names = [database.name for database in objects.databases]
    roles = [role.name for role in objects.roles if role.can_log_in]
    database = _chosen(visit.form.get("database", ""), names)
    owners = [one.owner_name for one in objects.databases if one.name == database]
    return Choice(
        project=found.project,
        branches=branches,
        branch=branch,
        databases=names,
        roles=roles,
        database=database,
        role=_chosen(visit.form.get("role", ""), roles, *owners),
    )


def _find(branches: Sequence[BranchName], wanted: str) -> BranchName:
    """Return the branch with this id, otherwise with this name; for "", the default branch."""
    if not wanted:
        return next(branch for branch in branches if branch.is_default)
    found = [branch for branch in branches if wanted in (branch.id, branch.name)]
    if not found:
        raise not_found("branch", wanted)
    return max(found, key=lambda branch: branch.id == wanted)


def _chosen(wanted: str, names: Sequence[str], *defaults: str) -> str:
    """Return the first of ``wanted`` and ``defaults`` in ``names``, or the first name, or ""."""
    candidates = [name for name in (wanted, *defaults) if name in names]
    return next(iter([*candidates, *names]), "")


def _check_same(visit: Visit, choice: Choice) -> None:
    """Raise 400 if the statement would not run on the chosen database, as the chosen role."""
    for kind, name in (("database", choice.database), ("role", choice.role)):
        wanted = visit.form.get(kind, name)
        if wanted != name:
            raise invalid(
                f"branch {choice.branch.name!r} has no {kind} {wanted!r} to connect with: choose "
                "another, and run the statement again"
            )


async def _connection_uri(visit: Visit, choice: Choice) -> str:
    if not choice.database or not choice.role:
        missing = "database" if not choice.database else "role that can log in"
        raise invalid(f"the branch has no {missing}: create one first")
    query = {
        "branch_id": choice.branch.id,
        "database_name": choice.database,
        "role_name": choice.role,
    }
    found = await visit.call(
        "GET /projects/{project_id}/connection_uri",
        ConnectionUri,
        query=query,
        project_id=choice.project.id,
    )
    return found.uri


def _outcome(result: Result, seconds: float) -> Outcome:
    return Outcome(
        columns=result.columns,
        rows=result.rows,
        status=result.status,
        has_more=result.has_more,
        notices=result.notices,
        duration=shown_seconds(seconds),
    )
