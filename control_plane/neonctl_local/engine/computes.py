"""Computes, which the API calls endpoints: starting, suspending, configuring and deleting."""

from typing import Final

from neonctl_local.clock import Instant, span
from neonctl_local.engine import restores, timelines
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.work import ConfigureBranch, StartCompute, SuspendCompute
from neonctl_local.errors import conflict, invalid
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Endpoint, Operation
from neonctl_local.storage.transactions import Transaction

INIT: Final = "init"
ACTIVE: Final = "active"
IDLE: Final = "idle"

MINIMUM_CU: Final = 0.25
"""The size of the smallest compute, in compute units."""

SIZES: Final = (MINIMUM_CU, 0.5, *range(1, 17), *range(18, 57, 2))
"""The sizes that a compute can have."""

LARGEST_AUTOSCALED: Final = 16
WIDEST_RANGE: Final = 8
"""The largest difference between the minimum and maximum size of an autoscaled compute."""

_CONNECTIONS_PER_CU: Final = 419.625
"""The number of connections per compute unit, which reproduces the numbers in Neon's table.

The table is on Neon's page ``reference/compatibility``. As in the table, an autoscaled compute gets
the number for the size ``min(max_compute_size, 8 * min_compute_size)``.
"""
_MOST_CONNECTIONS: Final = 1000
"""The largest number of connections to a compute.

Neon allows 4,000, but Postgres reserves memory for each connection.
"""


def of_branch(tx: Transaction, branch_id: str) -> list[Endpoint]:
    """Return the computes of a branch, oldest first."""
    where = "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    return tx.select(Endpoint, where, branch_id)


def list_running(tx: Transaction, project_id: str) -> list[Endpoint]:
    """Return the running and starting computes of a project, oldest first."""
    where = "WHERE project_id = ? AND state = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    return tx.select(Endpoint, where, project_id, ACTIVE)


def start(tx: Transaction, endpoint: Endpoint, chain: OperationChain) -> Endpoint:
    """Unarchive the branch of a compute, start the compute, and schedule its suspension."""
    branch = tx.first(Branch, "WHERE id = ?", endpoint.branch_id)
    if branch is not None:
        timelines.unarchive(tx, branch, chain)
    operation = chain.add(
        "start_compute",
        branch_id=endpoint.branch_id,
        endpoint_id=endpoint.id,
        work=StartCompute(endpoint.branch_id, endpoint.id),
    )
    return _change_state(tx, endpoint, operation, ACTIVE)


def suspend(tx: Transaction, endpoint: Endpoint, chain: OperationChain) -> Endpoint:
    """Suspend a compute."""
    operation = chain.add(
        "suspend_compute",
        branch_id=endpoint.branch_id,
        endpoint_id=endpoint.id,
        work=SuspendCompute(endpoint.branch_id, endpoint.id),
    )
    return _change_state(tx, endpoint, operation, IDLE)


def configure_branch(tx: Transaction, branch: Branch, chain: OperationChain) -> None:
    """Apply new roles, databases or settings to the read_write compute of a branch.

    An idle compute is started first, because only a running compute can apply them. A disabled
    compute applies them the next time that it is started.
    """
    restores.check_not_restoring(tx, branch.id)
    where = "WHERE branch_id = ? AND type = 'read_write' AND NOT disabled AND deleted_at IS NULL"
    endpoint = tx.first(Endpoint, where, branch.id)
    if endpoint is not None and endpoint.state != ACTIVE:
        endpoint = start(tx, endpoint, chain)
    else:
        timelines.unarchive(tx, branch, chain)
    if endpoint is None:
        chain.add("apply_config", branch_id=branch.id, work=ConfigureBranch(branch.id))
    else:
        configure(tx, endpoint, chain)


def configure(tx: Transaction, endpoint: Endpoint, chain: OperationChain) -> Endpoint:
    """Apply the settings of a compute. If it is running, this postpones its suspension."""
    operation = chain.add(
        "apply_config",
        branch_id=endpoint.branch_id,
        endpoint_id=endpoint.id,
        work=ConfigureBranch(endpoint.branch_id),
    )
    if endpoint.state != ACTIVE:
        return endpoint
    return tx.update(endpoint, idle_at=_idle_at(tx, endpoint, operation.settles_at))


def remove(tx: Transaction, endpoint: Endpoint, chain: OperationChain) -> Endpoint:
    """Delete a compute. Suspend it first, unless it is idle."""
    if needs_suspend(endpoint, tx.now):
        endpoint = suspend(tx, endpoint, chain)
    endpoint = tx.update(endpoint, deleted_at=tx.now, updated_at=tx.now, idle_at=None)
    schedule_checks(tx, endpoint.branch_id)
    return endpoint


def recover(tx: Transaction, endpoint: Endpoint) -> None:
    """Recover a compute that was deleted with its branch. It is idle afterwards."""
    tx.update(
        endpoint,
        deleted_at=None,
        deleted_with_branch=False,
        state_before=IDLE,
        state=IDLE,
        state_at=tx.now,
        state_operation=None,
        updated_at=tx.now,
    )
    schedule_checks(tx, endpoint.branch_id)


def suspend_timeout(tx: Transaction, endpoint: Endpoint) -> float | None:
    """Return the idle time after which a compute is suspended, in seconds. ``None`` means never."""
    timeout = endpoint.suspend_timeout_seconds
    if endpoint.autoscaling_limit_max_cu > LARGEST_AUTOSCALED:
        return None
    if timeout == 0:
        return tx.rules.intervals.suspend_after
    return None if timeout < 0 else timeout


def max_connections(endpoint: Endpoint) -> int:
    """Return how many connections a compute permits. Postgres reserves 7 of them."""
    minimum, maximum = endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu
    return min(int(_CONNECTIONS_PER_CU * min(maximum, 8 * minimum)), _MOST_CONNECTIONS)


def state(endpoint: Endpoint, now: Instant) -> str:
    """Return the state of a compute: ``init``, ``active`` or ``idle``."""
    return endpoint.state if now >= endpoint.state_at else endpoint.state_before


def check_single_writer(tx: Transaction, branch_id: str, type_: str) -> None:
    """Raise 409 if a branch would get a second read_write compute."""
    computes = of_branch(tx, branch_id)
    if type_ == "read_write" and any(endpoint.type == type_ for endpoint in computes):
        raise conflict(f"branch {branch_id!r} already has a read_write endpoint")


def check_sizes(minimum: float, maximum: float) -> None:
    """Raise 400 unless a compute can have these sizes and scale between them."""
    smaller, larger = "autoscaling_limit_min_cu", "autoscaling_limit_max_cu"
    for name, size in ((smaller, minimum), (larger, maximum)):
        if size not in SIZES:
            expected = "expected 0.25, 0.5, a whole number to 16 or an even number to 56"
            raise invalid(f"invalid request: {name}: {size:g} is no size: {expected}")
    problem = None
    if minimum > maximum:
        problem = f"is more than {larger}, {maximum:g}"
    elif minimum < maximum and maximum > LARGEST_AUTOSCALED:
        problem = f"to {maximum:g}: use {maximum:g} for both, because sizes above 16 are not scaled"
    elif maximum - minimum > WIDEST_RANGE:
        problem = f"to {maximum:g}: use {maximum - WIDEST_RANGE:g} or more, because 8 is the limit"
    if problem is not None:
        raise invalid(f"invalid request: {smaller}: {minimum:g} {problem}")


def needs_suspend(endpoint: Endpoint, now: Instant) -> bool:
    """Return whether a compute has to be suspended before it is moved or deleted."""
    return endpoint.state != IDLE or state(endpoint, now) != IDLE


def schedule_checks(tx: Transaction, branch_id: str) -> None:
    """Schedule the availability checks of a branch, or stop them if it has no compute."""
    every = tx.rules.intervals.check_availability_every
    if every is None or not of_branch(tx, branch_id):
        tx.execute("UPDATE branches SET check_at = NULL WHERE id = ?", branch_id)
    else:
        sql = "UPDATE branches SET check_at = ? WHERE id = ? AND check_at IS NULL"
        tx.execute(sql, tx.now + span(every), branch_id)


def host(tx: Transaction, endpoint: Endpoint, *, pooled: bool = False) -> str:
    """Return the host name of a compute. With ``pooled``, return that of its pooler."""
    return f"{endpoint.id}{'-pooler' if pooled else ''}.{proxy_host(tx, endpoint.region_id)}"


def proxy_host(tx: Transaction, region_id: str) -> str:
    """Return the host name of a region's proxy, which is the domain of the region's computes."""
    postgres = tx.rules.postgres
    return (postgres and postgres.domain) or unreachable_host(region_id)


def unreachable_host(region_id: str) -> str:
    """Return a host name for the computes of a region, at which no server is listening.

    The top-level domain "invalid" never resolves. A client that builds its own URI therefore
    reaches neither a real compute nor another Postgres on this machine.
    """
    provider, _, region = region_id.partition("-")
    return f"{region or provider}.{provider}.neon.invalid"


def note_end(tx: Transaction, endpoint: Endpoint) -> Instant:
    """Record that a compute ended without being suspended, and return the time.

    If it was running, this adds a finished suspend_compute, because its usage would go on
    otherwise. After a pause of the control plane, the run ended when the compute became idle.
    """
    at = min(tx.now, endpoint.idle_at or tx.now)
    if state(endpoint, tx.now) == ACTIVE:
        OperationChain(tx.at(at), endpoint.project_id).add_done(
            "suspend_compute",
            branch_id=endpoint.branch_id,
            endpoint_id=endpoint.id,
            may_fail=False,
        )
    return at


def set_states(tx: Transaction, operation: Operation) -> None:
    """Set the states and times of computes that were waiting for the end of an operation."""
    for endpoint in tx.select(Endpoint, "WHERE state_operation = ?", operation.id):
        changes = _outcome(tx, endpoint, operation, endpoint.state, endpoint.state_before)
        tx.update(endpoint, state_operation=None, **changes)
        timelines.schedule_archiving(tx, endpoint.branch_id, operation.settles_at)
    if operation.action == "delete_tenant" and operation.succeeds:
        for endpoint in list_running(tx, operation.project_id):
            note_end(tx, endpoint)
        where = "WHERE project_id = ? AND state_operation IS NULL"
        idle = "state_before = 'idle', state = 'idle', idle_at = NULL, running_on = NULL"
        tx.execute(f"UPDATE endpoints SET {idle} {where}", operation.project_id)
    if operation.endpoint_id is not None:
        _note_work(tx, tx.get(Endpoint, operation.endpoint_id), operation)


def _note_work(tx: Transaction, endpoint: Endpoint, operation: Operation) -> None:
    has_run = operation.work is not None and operation.succeeds
    has_moved = endpoint.branch_id != operation.branch_id and endpoint.state_operation is None
    if operation.action == "start_compute" and has_run and not has_moved:
        _note_server(tx, endpoint, operation, ACTIVE, running_on=operation.branch_id)
    elif operation.action == "suspend_compute" and has_run:
        _note_server(tx, endpoint, operation, IDLE, running_on=None)
    elif operation.action == "apply_config" and endpoint.idle_at is not None:
        tx.update(endpoint, idle_at=_idle_at(tx, endpoint, operation.settles_at))


def _note_server(
    tx: Transaction, endpoint: Endpoint, operation: Operation, to: str, *, running_on: str | None
) -> None:
    """Record that an operation has started or stopped the server of a compute.

    The operation may have been planned to fail when it was created, or a later operation may be
    about to change the state again.
    """
    changes: dict[str, SqlValue] = {}
    if endpoint.state_operation is not None:
        changes["state_before"] = to
        if to == IDLE:
            changes["suspended_at"] = operation.settles_at
    elif endpoint.state != to:
        changes = _outcome(tx, endpoint, operation, to, to)
    tx.update(endpoint, **changes, running_on=running_on)


def _change_state(tx: Transaction, endpoint: Endpoint, operation: Operation, to: str) -> Endpoint:
    before = state(endpoint, tx.now)
    if operation.is_open:
        changes: dict[str, SqlValue] = {"state": to, "idle_at": None}
    else:
        changes = _outcome(tx, endpoint, operation, to, before)
    changed = tx.update(
        endpoint,
        state_before=before,
        state_operation=operation.open_id,
        updated_at=tx.now,
        **{"state_at": operation.settles_at, **changes},
    )
    timelines.schedule_archiving(tx, endpoint.branch_id, operation.settles_at)
    return changed


def _outcome(
    tx: Transaction, endpoint: Endpoint, operation: Operation, to: str, before: str
) -> dict[str, SqlValue]:
    """Return how an operation with a known end changes a compute."""
    at = operation.settles_at
    changes: dict[str, SqlValue] = {"state_at": at}
    if operation.succeeds:
        changes["started_at" if to == ACTIVE else "suspended_at"] = at
    # A compute that fails to start is idle, unless it was never suspended. One that fails to
    # suspend stays active, and its next suspension is scheduled.
    elif to == ACTIVE:
        is_running = endpoint.running_on == endpoint.branch_id
        if tx.rules.postgres is None:
            is_running = endpoint.state == ACTIVE
        to = ACTIVE if is_running else IDLE
        changes["running_on"] = endpoint.running_on if to == ACTIVE else None
    else:
        to = before
    changes["state"] = to
    stays_idle = to == IDLE or endpoint.deleted_at is not None
    changes["idle_at"] = None if stays_idle else _idle_at(tx, endpoint, at)
    return changes


def _idle_at(tx: Transaction, endpoint: Endpoint, active_at: Instant) -> Instant | None:
    seconds = suspend_timeout(tx, endpoint)
    return None if seconds is None else active_at + span(seconds)
