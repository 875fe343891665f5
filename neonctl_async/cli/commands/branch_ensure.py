"""``neonctl-async branches ensure``."""

from typing import Annotated, Final

import typer
from msgspec import UNSET

from neonctl_async.cli.command import command
from neonctl_async.cli.finishing import check_connect, connection_uri, finish, outcomes
from neonctl_async.cli.names import project_id
from neonctl_async.cli.options import (
    WAIT_SECONDS,
    ConnectOption,
    ExpiresAtOption,
    ExpiresInOption,
    NameArgument,
    ParentOption,
    ProjectOption,
    SchemaOnlyOption,
    SecretsOption,
    SizeOption,
    SuspendOption,
    TimeoutOption,
    WaitOption,
    branch_computes,
    expiry,
    one_name,
    or_unset,
)
from neonctl_async.cli.output import Screen, View
from neonctl_async.cli.session import CommandSession
from neonctl_async.errors import MismatchError
from neonctl_async.models.branches import EnsuredBranch

app: Final = typer.Typer()


def _view(screen: Screen) -> View[EnsuredBranch]:
    return View(
        columns={
            "Result": _result,
            "ID": lambda ensured: ensured.branch.id,
            "Name": lambda ensured: ensured.branch.name,
            "Parent": lambda ensured: ensured.branch.parent_id or "",
            "Computes": lambda ensured: ", ".join(one.id for one in ensured.endpoints),
            "Expires": lambda ensured: ensured.branch.expires_at,
            "Connection URI": lambda ensured: connection_uri(screen, ensured),
            "Operations": lambda ensured: outcomes(ensured.operations),
        },
        raw=lambda ensured: ensured.branch.id,
    )


_OPTIONS: Final = {
    "protected": "its protection (--protected)",
    "init_source": "its kind of data (--schema-only)",
    "autoscaling_limit_min_cu": "its smallest size (--cu)",
    "autoscaling_limit_max_cu": "its largest size (--cu)",
    "suspend_timeout_seconds": "its suspend timeout in seconds (--suspend-timeout)",
}
"""The settings that are verified, and the command's options for them."""


def _with_options(error: MismatchError) -> MismatchError:
    """Return the error with the command's options in place of the Python parameters."""

    def described(difference: str) -> str:
        setting, _, rest = difference.partition(" ")
        return f"{_OPTIONS.get(setting, setting)} {rest}"

    return MismatchError(
        error.what,
        existing=error.existing,
        differences=[described(one) for one in error.differences],
        path=error.path,
        advice="leave out the options that differ, change it with `branches protect`, `branches "
        "set-expiration` or `endpoints update`, or use another name",
    )


def _result(ensured: EnsuredBranch) -> str:
    return "created" if ensured.created else "adopted"


@command(
    app,
    "ensure",
    "Create a branch, or verify and adopt the existing one of this name.\n\n"
    "If the existing branch would expire much too early, its expiry is postponed.",
    example="branches ensure preview --cu 0.25-1 --expires-in 7d",
)
async def ensure_branch(
    session: CommandSession,
    named: NameArgument = None,
    project: ProjectOption = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name of the branch.")
    ] = None,
    parent: ParentOption = None,
    *,
    compute: Annotated[
        bool,
        typer.Option(
            "--compute/--no-compute",
            help="Require a read-write compute, or create none and accept any.",
        ),
    ] = True,
    schema_only: SchemaOnlyOption = False,
    size: SizeOption = None,
    suspend_timeout: SuspendOption = None,
    protected: Annotated[
        bool | None,
        typer.Option(
            "--protected/--unprotected",
            help="Require this protection; by default, an existing branch may have either.",
            show_default=False,
        ),
    ] = None,
    expires_in: ExpiresInOption = None,
    expires_at: ExpiresAtOption = None,
    show_secrets: SecretsOption = False,
    wait: WaitOption = True,
    connect: ConnectOption = False,
    timeout: TimeoutOption = WAIT_SECONDS,
) -> None:
    session.screen.show_secrets = show_secrets
    name = one_name(named, name)
    if name is None:
        raise ValueError("no name: pass the name of the branch, such as `branches ensure preview`")
    check_connect(connect=connect, wait=wait, compute=compute)
    computes = branch_computes(size, suspend_timeout, compute=compute)
    expires_at = expiry(expires_in, expires_at)
    project = await project_id(session, project)
    request = session.neon.branches.ensure(
        project,
        name=name,
        parent=or_unset(parent),
        init_source="schema-only" if schema_only else UNSET,
        protected=or_unset(protected),
        expires_at=or_unset(expires_at),
        endpoints=computes,
    )
    try:
        ensured = await session.send(request)
    except MismatchError as error:
        raise _with_options(error) from None
    if wait and not ensured.operations and ensured.branch.current_state == "init":
        # Neon lists no operation to show the progress of.
        await session.neon.branches.wait_for(project, ensured.branch.id, timeout=timeout)
    done = f"branch {ensured.branch.id} was {_result(ensured)}"
    view = _view(session.screen)
    used = ensured.endpoints if connect else []
    await finish(session, ensured, view, done=done, wait=wait, timeout=timeout, connect=used)
