"""Computes, which the API calls endpoints: starting, suspending, configuring and deleting."""

from typing import Final

from neonctl_async.local.clock import Instant, span
from neonctl_async.local.engine import timelines
from neonctl_async.local.engine.operations import OperationChain
from neonctl_async.local.errors import conflict, invalid
from neonctl_async.local.storage.database import SqlValue, Transaction
from neonctl_async.local.storage.tables import Branch, Endpoint, Operation

INIT: Final = "init"
ACTIVE: Final = "active"
IDLE: Final = "idle"


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
    operation = chain.add("start_compute", branch_id=endpoint.branch_id, endpoint_id=endpoint.id)
    return _change_state(
        tx,
        endpoint,
        operation,
        ACTIVE,
        started_at=operation.settles_at,
        idle_at=_idle_at(tx, endpoint, operation.settles_at),
    )


def suspend(tx: Transaction, endpoint: Endpoint, chain: OperationChain) -> Endpoint:
    """Suspend a compute."""
    operation = chain.add("suspend_compute", branch_id=endpoint.branch_id, endpoint_id=endpoint.id)
    return _change_state(
        tx, endpoint, operation, IDLE, suspended_at=operation.settles_at, idle_at=None
    )


def configure_branch(tx: Transaction, branch: Branch, chain: OperationChain) -> None:
    """Apply new roles, databases or settings to the read_write compute of a branch.

    An idle compute is started first, because only a running one can apply them (section 2.3).
    """
    where = "WHERE branch_id = ? AND type = 'read_write' AND deleted_at IS NULL"
    endpoint = tx.first(Endpoint, where, branch.id)
    if endpoint is not None and endpoint.state != ACTIVE:
        endpoint = start(tx, endpoint, chain)
    else:
        timelines.unarchive(tx, branch, chain)
    if endpoint is None:
        chain.add("apply_config", branch_id=branch.id)
    else:
        configure(tx, endpoint, chain)


def configure(tx: Transaction, endpoint: Endpoint, chain: OperationChain) -> Endpoint:
    """Apply the settings of a compute. A running compute counts as used, and stays up longer."""
    operation = chain.add("apply_config", branch_id=endpoint.branch_id, endpoint_id=endpoint.id)
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
        updated_at=tx.now,
    )
    schedule_checks(tx, endpoint.branch_id)


def suspend_timeout(tx: Transaction, endpoint: Endpoint) -> float | None:
    """Return the idle time after which a compute is suspended, in seconds. ``None`` is never."""
    timeout = endpoint.suspend_timeout_seconds
    if timeout == 0:
        return tx.rules.intervals.suspend_after
    return None if timeout < 0 else timeout


def state(endpoint: Endpoint, now: Instant) -> str:
    """Return the state of a compute: ``init``, ``active`` or ``idle``."""
    return endpoint.state if now >= endpoint.state_at else endpoint.state_before


def check_single_writer(tx: Transaction, branch_id: str, type_: str) -> None:
    """Raise 409 if a second read_write compute would be added to a branch."""
    computes = of_branch(tx, branch_id)
    if type_ == "read_write" and any(endpoint.type == type_ for endpoint in computes):
        raise conflict(f"branch {branch_id!r} already has a read_write endpoint")


def check_size_limits(endpoint: Endpoint) -> None:
    """Raise 400 if the minimum size of a compute is larger than its maximum size."""
    minimum, maximum = endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu
    if minimum > maximum:
        raise invalid(
            f"invalid request: autoscaling_limit_min_cu: {minimum:g} is more than "
            f"autoscaling_limit_max_cu, {maximum:g}"
        )


def needs_suspend(endpoint: Endpoint, now: Instant) -> bool:
    """Return whether a compute has to be suspended before it is moved or deleted."""
    return endpoint.state != IDLE or state(endpoint, now) != IDLE


def schedule_checks(tx: Transaction, branch_id: str) -> None:
    """Schedule the availability checks of a branch, or stop them if it has no compute (2.3)."""
    every = tx.rules.intervals.check_availability_every
    if every is None or not of_branch(tx, branch_id):
        tx.execute("UPDATE branches SET check_at = NULL WHERE id = ?", branch_id)
    else:
        sql = "UPDATE branches SET check_at = ? WHERE id = ? AND check_at IS NULL"
        tx.execute(sql, tx.now + span(every), branch_id)


def host(endpoint: Endpoint, *, pooled: bool = False) -> str:
    """Return the host name of a compute. With ``pooled``, return the one of its pooler."""
    return f"{endpoint.id}{'-pooler' if pooled else ''}.{proxy_host(endpoint.region_id)}"


def proxy_host(region_id: str) -> str:
    """Return the proxy host of a region, under ``localhost`` to keep away from real computes."""
    provider, _, region = region_id.partition("-")
    return f"{region or provider}.{provider}.neon.localhost"


def _change_state(
    tx: Transaction, endpoint: Endpoint, operation: Operation, to: str, **changes: SqlValue
) -> Endpoint:
    before = state(endpoint, tx.now)
    if not operation.succeeds:
        # A compute that fails to start is idle. One that fails to suspend stays active, and its
        # next suspension is scheduled.
        to = IDLE if to == ACTIVE else before
        idle_at = None if to == IDLE else _idle_at(tx, endpoint, operation.settles_at)
        changes = {"idle_at": idle_at}
    changed = tx.update(
        endpoint,
        state_before=before,
        state=to,
        state_at=operation.settles_at,
        updated_at=tx.now,
        **changes,
    )
    timelines.schedule_archiving(tx, endpoint.branch_id, operation.settles_at)
    return changed


def _idle_at(tx: Transaction, endpoint: Endpoint, active_at: Instant) -> Instant | None:
    seconds = suspend_timeout(tx, endpoint)
    return None if seconds is None else active_at + span(seconds)
