"""Find records by exact name or by id.

An argument that looks like an id is used as an id, without a request. If Neon does not find it, the
argument is looked up as a name, and the command runs again.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from msgspec import UNSET, UnsetType

from neonctl_async.cli import context
from neonctl_async.cli.output import Output
from neonctl_async.cli.session import CommandSession, Search
from neonctl_async.errors import LookupFailedError, NeonError, NotFoundError
from neonctl_async.resources.names import SAMPLE, Named, Wanted

if TYPE_CHECKING:
    from neonctl_async.models.branches import Branch
    from neonctl_async.models.endpoints import Endpoint
    from neonctl_async.models.organizations import Organization
    from neonctl_async.models.projects import Project
    from neonctl_async.models.snapshots import Snapshot
    from neonctl_async.pagination import Paginator

T = TypeVar("T")

_PAGE: Final = 1000
_PROJECT_ID: Final = re.compile(r"[a-z]+-[a-z]+-(?=[a-z]*[0-9])[a-z0-9]{6,}")
_BRANCH_ID: Final = re.compile(r"br-[a-z0-9]+-[a-z0-9]+-[a-z0-9]+")
_ENDPOINT_ID: Final = re.compile(r"ep-[a-z0-9]+-[a-z0-9]+-[a-z0-9]+")
_ORG_ID: Final = re.compile(r"org-[a-z0-9-]+")
_SNAPSHOT_ID: Final = re.compile(r"snap-[a-z0-9]+-[a-z0-9]+-[a-z0-9]+")

NO_PROJECT: Final = (
    "no project: set --project or NEON_PROJECT_ID, or select one for this directory with "
    "`neonctl-async set-context --project-id PROJECT_ID`"
)


def is_project_id(text: str) -> bool:
    """Return whether ``text`` looks like a project id."""
    return _PROJECT_ID.fullmatch(text) is not None


def is_branch_id(text: str | None) -> bool:
    """Return whether ``text`` looks like a branch id."""
    return text is not None and _BRANCH_ID.fullmatch(text) is not None


def is_endpoint_id(text: str) -> bool:
    """Return whether ``text`` looks like a compute id."""
    return _ENDPOINT_ID.fullmatch(text) is not None


async def project_id(session: CommandSession, project: str | None, *, deleted: bool = False) -> str:
    """Return the id of the selected project, or of a ``deleted`` project that Neon can recover.

    ``project`` is a name or an id: the value of ``--project``, or its default from NEON_PROJECT_ID
    or the context. Raises ValueError for None, and for a name that two projects share. Raises
    LookupFailedError for an unknown name.
    """
    if project is None:
        await asyncio.to_thread(context.load, session.context_file)  # raises its errors
        raise ValueError(NO_PROJECT)
    org_id = await default_org(session)
    org = org_id or UNSET

    recoverable = True if deleted else UNSET

    def listed(search: str | UnsetType = UNSET) -> "Paginator[Project]":
        return session.neon.projects.list(
            limit=SAMPLE, search=search, org_id=org, recoverable=recoverable
        )

    def matches() -> "Awaitable[Sequence[Project]]":
        return listed(project).collect()

    def sample() -> "Awaitable[Sequence[Project]]":
        return listed().collect(SAMPLE)

    scope = f"organization {org_id}" if org_id else "the API key's account"
    kind = "deleted project" if deleted else "project"
    search = Search(Wanted(kind, scope, project), matches, sample)
    return await _resolve(session, search, _PROJECT_ID)


async def org_id(session: CommandSession, org: str) -> str:
    """Return the id of an organization. Raises the same errors as :func:`endpoint_id`."""

    def find_all() -> "Awaitable[Sequence[Organization]]":
        return session.neon.users.organizations()

    wanted = Wanted("organization", "the API key's account", org)
    return await _resolve(session, Search(wanted, find_all, find_all), _ORG_ID)


async def default_org(session: CommandSession) -> str | None:
    """Return the id of the organization in NEON_ORG_ID or in the context, or None."""
    return await selected_org(
        session, os.environ.get("NEON_ORG_ID") or (await _context(session)).org_id or None
    )


async def selected_org(session: CommandSession, org: str | None) -> str | None:
    """Return the id of the organization that an option selects, or None."""
    return None if org is None else await org_id(session, org)


async def branch_id(session: CommandSession, project_id: str, branch: str) -> str:
    """Return the id of a branch. Raises LookupFailedError if no branch has this name or id."""
    return await _resolve(session, _branch_search(session, project_id, branch), _BRANCH_ID)


async def listed_branch_id(session: CommandSession, project_id: str, branch: str) -> str:
    """Return the id of a branch as :func:`branch_id` does, but always look it up."""
    return await _listed(session, _branch_search(session, project_id, branch))


def _branch_search(session: CommandSession, project_id: str, branch: str) -> Search:
    def matches() -> "Awaitable[Sequence[Branch]]":
        return session.neon.branches.list(project_id, limit=SAMPLE, search=branch).collect()

    def sample() -> "Awaitable[Sequence[Branch]]":
        return session.neon.branches.list(project_id, limit=SAMPLE).collect(SAMPLE)

    return Search(Wanted("branch", f"project {project_id}", branch), matches, sample)


async def deleted_branch_id(session: CommandSession, project_id: str, branch: str) -> str:
    """Return the id of a deleted branch that Neon can recover. Its name may be in use again.

    Raises LookupFailedError and ValueError as :func:`project_id` does.
    """

    async def matches() -> "Sequence[Branch]":
        return await deleted_branches(session, project_id, branch)

    async def sample() -> "Sequence[Branch]":
        return await deleted_branches(session, project_id)

    wanted = Wanted("deleted branch", f"project {project_id}", branch)
    return await _resolve(session, Search(wanted, matches, sample), _BRANCH_ID)


async def deleted_branches(
    session: CommandSession, project_id: str, search: str | UnsetType = UNSET
) -> "Sequence[Branch]":
    """Return the deleted branches that Neon can recover. Neon lists them with all others."""
    listed = session.neon.branches.list(
        project_id, limit=SAMPLE, search=search, include_deleted=True
    )
    return [branch async for branch in listed if branch.recovery is not None]


async def branch_names(session: CommandSession, project_id: str) -> Mapping[str, str]:
    """Return the names of a project's branches by id, or none if the output has no columns."""
    if session.screen.output not in {Output.TABLE, Output.CSV}:
        return {}
    branches = await session.neon.branches.list(project_id, limit=_PAGE).collect()
    return {branch.id: branch.name for branch in branches}


async def branch_or_default(session: CommandSession, project_id: str, branch: str | None) -> str:
    """Return the id of the given branch, the context's branch or the default branch.

    The context's branch is used only for the context's project. Raises LookupFailedError if no
    branch has this name or id.
    """
    if branch is None:
        branch = (await _context(session)).branch_of(project_id)
    if branch is None:
        return (await session.neon.branches.default(project_id)).id
    return await branch_id(session, project_id, branch)


async def project_and_branch(
    session: CommandSession, project: str | None, branch: str | None
) -> tuple[str, str]:
    """Return the ids of a project and one of its branches, or their defaults."""
    id = await project_id(session, project)
    return id, await branch_or_default(session, id, branch)


async def endpoint_id(session: CommandSession, project_id: str, endpoint: str) -> str:
    """Return the id of a compute. Raises ValueError for a name that two computes share.

    Raises LookupFailedError if no compute has this name or id.
    """

    def find_all() -> "Awaitable[Sequence[Endpoint]]":
        return session.neon.endpoints.list(project_id)

    wanted = Wanted("compute", f"project {project_id}", endpoint)
    return await _resolve(session, Search(wanted, find_all, find_all), _ENDPOINT_ID)


async def snapshot_id(session: CommandSession, project_id: str, snapshot: str) -> str:
    """Return the id of a snapshot. Raises the same errors as :func:`endpoint_id`."""

    def find_all() -> "Awaitable[Sequence[Snapshot]]":
        return session.neon.snapshots.list(project_id)

    wanted = Wanted("snapshot", f"project {project_id}", snapshot)
    return await _resolve(session, Search(wanted, find_all, find_all), _SNAPSHOT_ID)


async def found(
    session: CommandSession,
    call: Awaitable[T],
    kind: Literal["database", "role"],
    project: str,
    branch: str,
    name: str,
) -> T:
    """Return the result of a call for a database or a role of a branch.

    Raises LookupFailedError, with the names that exist, if this name is not among them.
    """
    neon, wanted = session.neon, Wanted(kind, f"branch {branch}", name)
    try:
        return await call
    except NotFoundError:
        listed = neon.databases.list if kind == "database" else neon.roles.list
        try:
            names = [one.name for one in await listed(project, branch)]
        except NeonError:  # the first error explains more
            names = [name]
        if name in names:
            raise
        raise LookupFailedError(wanted.unknown(names)) from None


async def _context(session: CommandSession) -> context.Context:
    return await asyncio.to_thread(context.load_usable, session.context_file)


async def with_names(session: CommandSession, work: Callable[[], Awaitable[None]]) -> None:
    """Run a command. Run it again if it mistook a name for an id."""
    while True:
        try:
            await work()
        except NotFoundError:
            if not await _find_assumed(session):
                raise
        else:
            return


async def _find_assumed(session: CommandSession) -> bool:
    """Look up by name the arguments that were assumed to be ids.

    Return whether one turned out to be a name.
    """
    assumed = list(session.names.assumed.items())
    session.names.assumed.clear()
    for key, search in assumed:
        try:
            matches = await search.matches()
        except NeonError:  # the first error explains more
            continue
        if all(one.id != search.wanted.name for one in matches) and (
            found := _exact(search, matches)
        ):
            session.names.ids[key] = found
            return True
    return False


async def _resolve(session: CommandSession, search: Search, form: re.Pattern[str]) -> str:
    text = search.wanted.name
    key = search.wanted.kind, text
    if key in session.names.ids:
        return session.names.ids[key]
    if form.fullmatch(text):
        session.names.assumed[key] = search
        return text
    return await _listed(session, search)


async def _listed(session: CommandSession, search: Search) -> str:
    found = _exact(search, await search.matches())
    if found is None:
        raise LookupFailedError(search.wanted.missing(await search.sample(), "name or the id"))
    session.names.ids[search.wanted.kind, search.wanted.name] = found
    return found


def _exact(search: Search, matches: Sequence[Named]) -> str | None:
    """Return the id of the record with this id or exactly this name, or None."""
    wanted = search.wanted
    if any(one.id == wanted.name for one in matches):
        return wanted.name
    found = wanted.only(matches)
    return None if found is None else found.id
