"""``neonctl-async wait``: wait for operations, states and connections, whoever causes them."""

import sys
from collections.abc import Coroutine, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.commands.operations import wait_for_operations
from neonctl_async.cli.finishing import in_parallel
from neonctl_async.cli.names import (
    branch_id,
    endpoint_id,
    is_endpoint_id,
    project_id,
)
from neonctl_async.cli.options import WAIT_SECONDS, ProjectOption, TimeoutOption
from neonctl_async.cli.output import Output, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.errors import LookupFailedError
from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.projects import Project

app: Final = typer.Typer()


class Condition(StrEnum):
    """The condition that ends a wait."""

    OPERATION = "operation"
    READY = "ready"
    ACTIVE = "active"
    IDLE = "idle"
    CONNECTABLE = "connectable"
    DELETED = "deleted"


ConditionOption = Annotated[
    Condition,
    typer.Option(
        "--for",
        help="operation: has finished. ready: a branch. active, idle, connectable: a compute, or "
        "the computes of a branch. deleted: a branch, or a compute by its id.",
        show_default=False,
    ),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        autocompletion=completion.branches,
        help="Names or ids of branches and computes, or ids of operations. By default, wait "
        "until the project is ready or deleted, or its pending operations have finished.",
        show_default=False,
    ),
]

_PROJECT: View[Project] = View(
    columns={"ID": lambda project: project.id, "Name": lambda project: project.name},
    raw=lambda project: project.id,
)
_BRANCH: View[Branch] = View(
    columns={
        "ID": lambda branch: branch.id,
        "Name": lambda branch: branch.name,
        "State": lambda branch: branch.current_state,
    },
    raw=lambda branch: branch.id,
    first=("State", "Name"),
)
_COMPUTE: View[Endpoint] = View(
    columns={
        "ID": lambda compute: compute.id,
        "Branch": lambda compute: compute.branch_id,
        "State": lambda compute: compute.current_state,
        "Host": lambda compute: compute.host,
    },
    raw=lambda compute: compute.id,
    first=("State",),
)


@command(
    app,
    "wait",
    "Wait until operations have finished, a branch is ready, computes are active, idle or "
    "connectable, or something is deleted.",
    example="wait --for ready $NEON_BRANCH_ID --timeout 60",
)
async def wait(
    session: CommandSession,
    condition: ConditionOption,
    names: NamesArgument = None,
    project: ProjectOption = None,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    if condition is Condition.OPERATION:
        await wait_for_operations(session, names, project=project, timeout=timeout)
        return
    project = await project_id(session, project)
    _print_goal(session, condition, names or [f"project {project}"])
    match condition:
        case Condition.READY if not names:
            ready = await session.neon.projects.wait_for(project, timeout=timeout)
            session.screen.show_list([ready], _PROJECT)
        case Condition.READY:
            await _wait_until_ready(session, project, names or (), timeout)
        case Condition.DELETED:
            await _wait_until_deleted(session, project, names or (), timeout)
        case _:
            await _wait_for_computes(session, project, condition, names or (), timeout)


async def _wait_until_ready(
    session: CommandSession, project: str, names: Sequence[str], timeout: float
) -> None:
    branches = [await branch_id(session, project, name) for name in names]
    waits = (session.neon.branches.wait_for(project, id, timeout=timeout) for id in branches)
    session.screen.show_list(await in_parallel(waits), _BRANCH)


async def _wait_until_deleted(
    session: CommandSession, project: str, names: Sequence[str], timeout: float
) -> None:
    neon = session.neon
    computes = [name for name in names if is_endpoint_id(name)]
    others = [name for name in names if not is_endpoint_id(name)]
    # Look up all names before the first wait: a failure would leave coroutines that nothing awaits.
    branches = [await _branch_or_none(session, project, name) for name in others]
    waits: list[Coroutine[Any, Any, None]] = [
        *(neon.endpoints.wait_for(project, id, "deleted", timeout=timeout) for id in computes),
        *(neon.branches.wait_for(project, id, "deleted", timeout=timeout) for id in branches if id),
    ]
    if not names:
        waits.append(neon.projects.wait_for(project, "deleted", timeout=timeout))
    await in_parallel(waits)
    if session.screen.output in {Output.JSON, Output.YAML}:
        session.screen.show_list([], _BRANCH)


async def _branch_or_none(session: CommandSession, project: str, name: str) -> str | None:
    """Return the id of a branch. Print a message and return None if there is no such branch."""
    try:
        return await branch_id(session, project, name)
    except LookupFailedError as error:
        session.screen.print_message(f"{error}; it counts as deleted")
        return None


async def _wait_for_computes(
    session: CommandSession,
    project: str,
    condition: Condition,
    names: Sequence[str],
    timeout: float,
) -> None:
    if not names:
        raise ValueError(f"--for {condition} has no compute: add the name of a branch or a compute")
    endpoints = session.neon.endpoints
    found = [id for name in names for id in await _computes(session, project, name)]
    if condition is Condition.CONNECTABLE:
        waits = [endpoints.wait_connectable(project, id, timeout=timeout) for id in found]
        session.screen.show_list(await in_parallel(waits), _COMPUTE)
        return
    state = condition.value
    changes = [endpoints.wait_for(project, id, state, timeout=timeout) for id in found]
    shown = [compute for compute in await in_parallel(changes) if compute is not None]
    session.screen.show_list(shown, _COMPUTE)


async def _computes(session: CommandSession, project: str, name: str) -> list[str]:
    """Return the id of a compute, or the ids of the computes of a branch.

    If a branch and a compute share the name, the branch takes precedence.
    """
    if is_endpoint_id(name):
        return [await endpoint_id(session, project, name)]
    try:
        branch = await branch_id(session, project, name)
    except LookupFailedError as error:
        try:
            return [await endpoint_id(session, project, name)]
        except LookupFailedError:
            raise error from None  # it suggests names of branches
    computes = await session.neon.branches.list_endpoints(project, branch)
    if not computes:
        raise ValueError(
            f"branch {name} has no compute: add one with "
            f"`neonctl-async endpoints create --branch {branch}`"
        )
    return [compute.id for compute in computes]


def _print_goal(session: CommandSession, condition: Condition, names: Sequence[str]) -> None:
    """Print the goal on a terminal, because a wait for a state shows no progress."""
    if sys.stderr.isatty():
        verb = "is" if len(names) == 1 else "are"
        session.screen.print_message(f"waiting until {', '.join(names)} {verb} {condition}")
