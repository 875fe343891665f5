"""``neonctl-async endpoints``: computes, which the API calls endpoints."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from neonctl_async.cli import completion
from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import finish, outcomes, outcomes_view
from neonctl_async.cli.names import (
    branch_id,
    branch_names,
    endpoint_id,
    project_and_branch,
    project_id,
)
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    BranchOption,
    OfBranchOption,
    ProjectOption,
    SizeOption,
    SuspendOption,
    TimeoutOption,
    WaitOption,
    check_change,
    compute_limits,
    or_unset,
)
from neonctl_async.cli.output import View
from neonctl_async.cli.session import CommandSession
from neonctl_async.models.endpoints import Endpoint, EndpointType, EndpointUpdated

app: Final = typer.Typer()


class ComputeType(StrEnum):
    """The type of a new compute."""

    READ_WRITE = "read_write"
    READ_ONLY = "read_only"


def _size_label(endpoint: Endpoint) -> str:
    smallest, largest = endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu
    if smallest is None or largest is None:
        return ""
    return f"{smallest:g} CU" if smallest == largest else f"{smallest:g}-{largest:g} CU"


EndpointArgument = Annotated[
    str,
    typer.Argument(
        metavar="COMPUTE",
        autocompletion=completion.endpoints,
        help="The id or the name of the compute.",
        show_default=False,
    ),
]
ComputeNameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name of the compute.", show_default=False),
]

DisabledOption = Annotated[
    bool | None,
    typer.Option(
        "--disabled/--enabled", help="Forbid or allow connections to start it.", show_default=False
    ),
]

_COMPUTE: View[Endpoint] = View(
    columns={
        "ID": lambda endpoint: endpoint.id,
        "Branch": lambda endpoint: endpoint.branch_id,
        "Type": lambda endpoint: endpoint.type,
        "State": lambda endpoint: endpoint.current_state,
        "Size": _size_label,
        "Name": lambda endpoint: endpoint.name,
    },
    raw=lambda endpoint: endpoint.id,
    first=("State",),
)
_ENDPOINT: View[Endpoint] = View(
    columns={
        **_COMPUTE.columns,
        "Host": lambda endpoint: endpoint.host,
        "Last active": lambda endpoint: endpoint.last_active,
        "Created": lambda endpoint: endpoint.created_at,
    },
    raw=lambda endpoint: endpoint.id,
)
_CHANGED: View[EndpointUpdated] = View(
    columns={
        "ID": lambda changed: changed.endpoint.id,
        "Name": lambda changed: changed.endpoint.name or "",
        "Branch": lambda changed: changed.endpoint.branch_id,
        "Type": lambda changed: changed.endpoint.type,
        "Size": lambda changed: _size_label(changed.endpoint),
        "Host": lambda changed: changed.endpoint.host,
        "Operations": lambda changed: outcomes(changed.operations),
    },
    raw=lambda changed: changed.endpoint.id,
)


async def _selected(session: CommandSession, project: str | None, endpoint: str) -> tuple[str, str]:
    """Return the ids of the project and the compute."""
    id = await project_id(session, project)
    return id, await endpoint_id(session, id, endpoint)


@command(
    app,
    "list",
    "List the computes of a project, or of a branch.",
    example="endpoints list --branch main",
)
async def list_endpoints(
    session: CommandSession,
    project: ProjectOption = None,
    branch: OfBranchOption = None,
) -> None:
    project = await project_id(session, project)
    if branch is None:
        listed = await session.neon.endpoints.list(project)
    else:
        branch = await branch_id(session, project, branch)
        listed = await session.neon.branches.list_endpoints(project, branch)
    names = await branch_names(session, project)
    view = _COMPUTE.with_column("Branch", lambda one: names.get(one.branch_id, one.branch_id))
    session.screen.show_list(listed, view)


@command(app, "get", "Show a compute.", example="endpoints get $NEON_ENDPOINT_ID")
async def get_endpoint(
    session: CommandSession, endpoint: EndpointArgument, project: ProjectOption = None
) -> None:
    project, endpoint = await _selected(session, project, endpoint)
    session.screen.show(await session.neon.endpoints.get(project, endpoint), _ENDPOINT)


@command(
    app,
    "create",
    "Create a compute for a branch, and start it.",
    example="endpoints create --type read_only --cu 0.5-2",
)
async def create_endpoint(
    session: CommandSession,
    project: ProjectOption = None,
    *,
    branch: BranchOption = None,
    type: Annotated[
        ComputeType,
        typer.Option("--type", help="A branch has at most one compute that can write."),
    ] = ComputeType.READ_WRITE,
    name: ComputeNameOption = None,
    size: SizeOption = None,
    suspend_timeout: SuspendOption = None,
    disabled: DisabledOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, branch = await project_and_branch(session, project, branch)
    request = session.neon.endpoints.create(
        project,
        branch_id=branch,
        type=EndpointType(type),
        name=or_unset(name),
        disabled=or_unset(disabled),
        **compute_limits(size, suspend_timeout),
    )
    created = await session.send(request)
    done = f"compute {created.endpoint.id} was created"
    await finish(session, created, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "update",
    "Change the settings of a compute.",
    example="endpoints update $NEON_ENDPOINT_ID --cu 1-4",
)
async def update_endpoint(
    session: CommandSession,
    endpoint: EndpointArgument,
    project: ProjectOption = None,
    *,
    name: ComputeNameOption = None,
    size: SizeOption = None,
    suspend_timeout: SuspendOption = None,
    disabled: DisabledOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    check_change(name=name, cu=size, suspend_timeout=suspend_timeout, disabled=disabled)
    project, endpoint = await _selected(session, project, endpoint)
    request = session.neon.endpoints.update(
        project,
        endpoint,
        name=or_unset(name),
        disabled=or_unset(disabled),
        **compute_limits(size, suspend_timeout),
    )
    changed = await session.send(request)
    done = f"the change of compute {endpoint} was requested"
    await finish(session, changed, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(app, "start", "Start a compute.", example="endpoints start $NEON_ENDPOINT_ID")
async def start_endpoint(
    session: CommandSession,
    endpoint: EndpointArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, endpoint = await _selected(session, project, endpoint)
    started = await session.send(session.neon.endpoints.start(project, endpoint))
    done = f"the start of compute {endpoint} was requested"
    await finish(session, started, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "suspend",
    "Suspend a compute. This closes its connections.",
    example="endpoints suspend $NEON_ENDPOINT_ID",
)
async def suspend_endpoint(
    session: CommandSession,
    endpoint: EndpointArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, endpoint = await _selected(session, project, endpoint)
    suspended = await session.send(session.neon.endpoints.suspend(project, endpoint))
    done = f"the suspension of compute {endpoint} was requested"
    await finish(session, suspended, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "restart",
    "Restart a compute. This closes its connections.",
    example="endpoints restart $NEON_ENDPOINT_ID",
)
async def restart_endpoint(
    session: CommandSession,
    endpoint: EndpointArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    project, endpoint = await _selected(session, project, endpoint)
    restarted = await session.send(session.neon.endpoints.restart(project, endpoint))
    done = f"the restart of compute {endpoint} was requested"
    await finish(session, restarted, _CHANGED, done=done, wait=wait, timeout=timeout)


@command(
    app,
    "delete",
    "Delete a compute. The branch keeps its data.",
    example="endpoints delete $NEON_ENDPOINT_ID",
    asks=True,
)
async def delete_endpoint(
    session: CommandSession,
    endpoint: EndpointArgument,
    project: ProjectOption = None,
    *,
    wait: WaitOption = True,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    question = f"Delete compute {endpoint} of project {project}?"
    project, endpoint = await _selected(session, project, endpoint)
    await session.confirm(question)
    deleted = await session.send(session.neon.endpoints.delete(project, endpoint))
    done = f"the deletion of compute {endpoint} was requested"
    await finish(
        session, deleted, outcomes_view("Deleted", endpoint), done=done, wait=wait, timeout=timeout
    )
