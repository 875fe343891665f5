"""Shell completion of names and ids.

It prints no errors and gives up quickly, because the shell waits for it whenever the user presses
Tab.
"""

import asyncio
import logging
import os
import re
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple, ParamSpec, TypeVar

import typer
from msgspec import UNSET

from neonctl_async.cli import names
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.session import CommandSession

P = ParamSpec("P")
T = TypeVar("T")

VARIABLE: Final = "_NEONCTL_ASYNC_COMPLETE"
"""The environment variable that a shell sets when it requests completions."""
TIMEOUT: Final = 1.5
"""The time limit for all requests of a completion, in seconds."""
_LIMIT: Final = 100
"""The maximum number of suggestions."""
_WORD: Final = re.compile(r"[\w./@+-]+", re.ASCII)
"""A name that does not need quotes in a shell. For other names, the id is suggested."""


class _Record(NamedTuple):
    """A record to suggest. Databases and roles have no id."""

    name: str | None
    id: str = ""
    note: str = ""


_Find = Callable[[CommandSession, str], Awaitable[Sequence[_Record]]]
"""Returns at least the records whose name or id contains a string; for "", the first records."""

_Proposals = list[tuple[str, str]]


def projects(ctx: typer.Context, incomplete: str) -> _Proposals:
    """Return the names or ids of projects, each with a description."""

    async def find(session: CommandSession, search: str) -> list[_Record]:
        org = await names.selected_org(session, ctx.params.get("org"))
        org_id = org or await names.default_org(session)
        found = session.neon.projects.list(
            limit=_LIMIT, search=search or UNSET, org_id=org_id or UNSET
        )
        return [_Record(one.name, one.id) for one in await found.collect(_LIMIT)]

    return _propose(ctx, incomplete, find)


def branches(ctx: typer.Context, incomplete: str) -> _Proposals:
    """Return the names or ids of the project's branches, each with a description."""

    async def find(session: CommandSession, search: str) -> list[_Record]:
        project_id = await names.project_id(session, ctx.params.get("project"))
        found = session.neon.branches.list(project_id, limit=_LIMIT, search=search or UNSET)
        return [_Record(one.name, one.id) for one in await found.collect(_LIMIT)]

    return _propose(ctx, incomplete, find)


def endpoints(ctx: typer.Context, incomplete: str) -> _Proposals:
    """Return the names or ids of the project's computes, each with a description."""

    async def find(session: CommandSession, _search: str) -> list[_Record]:
        project_id = await names.project_id(session, ctx.params.get("project"))
        found = await session.neon.endpoints.list(project_id)
        return [_Record(one.name, one.id, f"{one.type} of {one.branch_id}") for one in found]

    return _propose(ctx, incomplete, find)


def snapshots(ctx: typer.Context, incomplete: str) -> _Proposals:
    """Return the names or ids of the project's snapshots, each with a description."""

    async def find(session: CommandSession, _search: str) -> list[_Record]:
        project_id = await names.project_id(session, ctx.params.get("project"))
        return [_Record(one.name, one.id) for one in await session.neon.snapshots.list(project_id)]

    return _propose(ctx, incomplete, find)


def databases(ctx: typer.Context, incomplete: str) -> _Proposals:
    """Return the names of the branch's databases, each with its owner."""

    async def find(session: CommandSession, _search: str) -> list[_Record]:
        found = await session.neon.databases.list(*await _selected_branch(session, ctx))
        return [_Record(one.name, note=f"owned by {one.owner_name}") for one in found]

    return _propose(ctx, incomplete, find)


def roles(ctx: typer.Context, incomplete: str) -> _Proposals:
    """Return the names of the branch's roles."""

    async def find(session: CommandSession, _search: str) -> list[_Record]:
        found = await session.neon.roles.list(*await _selected_branch(session, ctx))
        return [_Record(one.name) for one in found]

    return _propose(ctx, incomplete, find)


async def _selected_branch(session: CommandSession, ctx: typer.Context) -> tuple[str, str]:
    """Return the ids of the project and the branch."""
    project_id = await names.project_id(session, ctx.params.get("project"))
    return project_id, await names.branch_or_default(session, project_id, ctx.params.get("branch"))


def _propose(ctx: typer.Context, incomplete: str, find: _Find) -> _Proposals:
    try:
        with _without_logs():
            records = _run(ctx, incomplete, find)
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - the shell would show a message between the words of the user
        return []
    return _matching(records, incomplete)[:_LIMIT]


def _matching(records: Sequence[_Record], incomplete: str) -> _Proposals:
    found = [one.name for one in records]
    proposals: _Proposals = []
    for record in records:
        name = record.name or ""
        if _WORD.fullmatch(name) and found.count(name) == 1 and name.startswith(incomplete):
            proposals.append((name, record.note or record.id))
        elif record.id and record.id.startswith(incomplete):
            proposals.append((record.id, record.note or name))
    return proposals


def _run(ctx: typer.Context, incomplete: str, find: _Find) -> Sequence[_Record]:
    if not os.environ.get("NEON_API_KEY"):
        return []
    # Imported only here: importing the client takes most of the start-up time.
    from neonctl_async.cli.running import new_client
    from neonctl_async.config import RetryPolicy

    client = new_client(ctx.params.get("api_host"), retry=RetryPolicy.never())
    records: Sequence[_Record] = []

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(_DaemonExecutor())
        async with asyncio.timeout(TIMEOUT), client as neon:
            session = CommandSession(Screen(Output.RAW), neon)
            session.context_file = ctx.params.get("context_file")

            async def work() -> None:
                nonlocal records
                records = await find(session, incomplete)
                if incomplete and not _matching(records, incomplete):
                    records = await find(session, "")  # the search may skip parts of ids

            await names.with_names(session, work)

    asyncio.run(run())
    return records


class _DaemonExecutor(ThreadPoolExecutor):
    """Runs each call in a daemon thread, so that slow DNS servers do not delay Python's exit."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future


@contextmanager
def _without_logs() -> Generator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
