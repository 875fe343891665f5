"""Computes, which the API calls endpoints: made, started, suspended, shown."""

from typing import Final

from neonctl_async.local.clock import Instant, span
from neonctl_async.local.engine import timelines
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.errors import conflict, invalid
from neonctl_async.local.storage.database import SqlValue, Transaction
from neonctl_async.local.storage.tables import Branch, Endpoint, Operation

INIT: Final = "init"
ACTIVE: Final = "active"
IDLE: Final = "idle"


def of_branch(tx: Transaction, branch_id: str) -> list[Endpoint]:
    """The computes of a branch, oldest first."""
    where = "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    return tx.select(Endpoint, where, branch_id)


def running(tx: Transaction, project_id: str) -> list[Endpoint]:
    """The computes of a project that run, or are about to, oldest first."""
    where = "WHERE project_id = ? AND state = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    return tx.select(Endpoint, where, project_id, ACTIVE)


def start(tx: Transaction, endpoint: Endpoint, chain: Chain) -> Endpoint:
    """Start a compute, its branch unarchived first; left idle long enough, it is suspended."""
    branch = tx.first(Branch, "WHERE id = ?", endpoint.branch_id)
    if branch is not None:
        timelines.unarchive(tx, branch, chain)
    operation = chain.add("start_compute", branch_id=endpoint.branch_id, endpoint_id=endpoint.id)
    return _move(
        tx,
        endpoint,
        operation,
        ACTIVE,
        started_at=operation.settles_at,
        idle_at=_idle_at(tx, endpoint, operation.settles_at),
    )


def suspend(tx: Transaction, endpoint: Endpoint, chain: Chain) -> Endpoint:
    """Suspend a compute."""
    operation = chain.add("suspend_compute", branch_id=endpoint.branch_id, endpoint_id=endpoint.id)
    return _move(tx, endpoint, operation, IDLE, suspended_at=operation.settles_at, idle_at=None)


def configure(tx: Transaction, branch: Branch, chain: Chain) -> None:
    """Have the compute of a branch apply a new configuration: roles, databases, settings.

    It takes a running compute, so one that is idle is started first (section 2.3, start compute).
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
        apply(tx, endpoint, chain)


def apply(tx: Transaction, endpoint: Endpoint, chain: Chain) -> Endpoint:
    """Apply the settings of a compute; one that runs counts as used by that."""
    operation = chain.add("apply_config", branch_id=endpoint.branch_id, endpoint_id=endpoint.id)
    if endpoint.state != ACTIVE:
        return endpoint
    return tx.update(endpoint, idle_at=_idle_at(tx, endpoint, operation.settles_at))


def remove(tx: Transaction, endpoint: Endpoint, chain: Chain) -> Endpoint:
    """Delete a compute, suspended first if it is not idle."""
    if in_use(endpoint, tx.now):
        endpoint = suspend(tx, endpoint, chain)
    endpoint = tx.update(endpoint, deleted_at=tx.now, updated_at=tx.now, idle_at=None)
    watch_branch(tx, endpoint.branch_id)
    return endpoint


def bring_back(tx: Transaction, endpoint: Endpoint) -> None:
    """Have a compute back that was deleted with its branch: idle."""
    tx.update(
        endpoint,
        deleted_at=None,
        deleted_with_branch=False,
        state_before=IDLE,
        state=IDLE,
        state_at=tx.now,
        updated_at=tx.now,
    )
    watch_branch(tx, endpoint.branch_id)


def timeout(tx: Transaction, endpoint: Endpoint) -> float | None:
    """The idle time after which a compute is suspended, in seconds; ``None`` for never."""
    own = endpoint.suspend_timeout_seconds
    if own == 0:
        return tx.rules.intervals.suspend_after
    return None if own < 0 else own


def state(endpoint: Endpoint, now: Instant) -> str:
    """``init``, ``active`` or ``idle``."""
    return endpoint.state if now >= endpoint.state_at else endpoint.state_before


def refuse_second_writer(tx: Transaction, branch_id: str, type_: str) -> None:
    """Raise 409 where a branch has the one read_write compute it may have."""
    computes = of_branch(tx, branch_id)
    if type_ == "read_write" and any(endpoint.type == type_ for endpoint in computes):
        raise conflict(f"branch {branch_id!r} already has a read_write endpoint")


def refuse_crossed_limits(endpoint: Endpoint) -> None:
    """Raise 400 where the smallest size of a compute is more than its largest."""
    least, most = endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu
    if least > most:
        raise invalid(
            f"invalid request: autoscaling_limit_min_cu: {least:g} is more than "
            f"autoscaling_limit_max_cu, {most:g}"
        )


def in_use(endpoint: Endpoint, now: Instant) -> bool:
    """Whether a compute runs, or is about to."""
    return endpoint.state != IDLE or state(endpoint, now) != IDLE


def watch_branch(tx: Transaction, branch_id: str) -> None:
    """Have a branch checked for availability from now on if it has a compute, else not (2.3)."""
    every = tx.rules.intervals.check_availability_every
    has_compute = bool(of_branch(tx, branch_id))
    if not has_compute or every is None:
        tx.execute("UPDATE branches SET check_at = NULL WHERE id = ?", branch_id)
    else:
        tx.execute(
            "UPDATE branches SET check_at = ? WHERE id = ? AND check_at IS NULL",
            tx.now + span(every),
            branch_id,
        )


def host(endpoint: Endpoint, *, pooled: bool = False) -> str:
    """Where a compute would answer."""
    return f"{endpoint.id}{'-pooler' if pooled else ''}.{proxy_host(endpoint.region_id)}"


def proxy_host(region_id: str) -> str:
    """The proxy of a region. Under ``localhost``, so that nobody's real compute is ever reached."""
    provider, _, region = region_id.partition("-")
    return f"{region or provider}.{provider}.neon.localhost"


def _move(
    tx: Transaction, endpoint: Endpoint, operation: Operation, to: str, **changes: SqlValue
) -> Endpoint:
    before = state(endpoint, tx.now)
    if not operation.succeeds:
        # What failed to start is idle; what failed to suspend is active, and is tried again.
        to = IDLE if to == ACTIVE else before
        again = None if to == IDLE else _idle_at(tx, endpoint, operation.settles_at)
        changes = {"idle_at": again}
    moved = tx.update(
        endpoint,
        state_before=before,
        state=to,
        state_at=operation.settles_at,
        updated_at=tx.now,
        **changes,
    )
    timelines.watch(tx, endpoint.branch_id, operation.settles_at)
    return moved


def _idle_at(tx: Transaction, endpoint: Endpoint, active_at: Instant) -> Instant | None:
    seconds = timeout(tx, endpoint)
    return None if seconds is None else active_at + span(seconds)
