"""Recoveries of clusters to a moment in their history, and the copies that recoveries need."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from neonctl_local.postgres.admin import current_lsn, write_mark
from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.copying import remove
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history.archive import History
from neonctl_local.postgres.history.bases import (
    Base,
    Moment,
    find_base,
    is_due,
    outdated,
    position,
)
from neonctl_local.postgres.servers.scheduling import in_thread

_NO_END: Final = "recovery ended before configured recovery target was reached"


async def check_moment(source: Cluster, moment: Moment) -> None:
    """Raise ClusterError, with the reason, if a cluster's history does not cover a moment."""
    history = _history(source)
    if await _is_present(source, moment):
        return
    bases = await in_thread(history.bases)
    if find_base(bases, moment) is None:
        if not bases:
            raise ClusterError("it has no history yet, because its compute was never started")
        start = f"{bases[0].taken_at.isoformat()} and LSN {bases[0].lsn}"
        raise ClusterError(f"its history starts at {start}")
    if moment.lsn is not None and position(moment.lsn) > position(end := await _end(source)):
        raise ClusterError(f"its WAL ends at LSN {end}")


async def recover(source: Cluster, moment: Moment, target: Cluster) -> None:
    """Create ``target`` with the data that ``source`` had at a moment."""
    if await _is_present(source, moment):
        await source.copy_to(target.data)
        return
    last = None
    if source.running:
        async with source.session() as session:
            last = await write_mark(session)
    try:
        await _recover(source, moment, target, last)
    except ClusterError as error:
        if last is not None or moment.at is None or _NO_END not in str(error):
            raise
        # Nothing was committed between the moment and the stop of the source.
        await in_thread(remove, target.data)
        await _recover(source, moment, target, None, to_end=True)


async def keep_history(source: Cluster) -> None:
    """Copy the data of a cluster if recovery from its last copy would take too long."""
    history = _history(source)
    usage = await in_thread(history.usage)
    if not is_due([base for base, _ in usage], usage[-1][1] - usage[-1][0].size if usage else 0):
        return
    installation = await in_thread(source.installation)
    if source.running:
        await source.add_base(history, installation)
    elif usage and await in_thread(source.stored_change) is not None:
        # A start makes the first copy.
        await in_thread(history.copy_stopped, installation)


async def list_outdated(source: Cluster, retention: float) -> Sequence[Base]:
    """Return the copies of a cluster that are not needed for the last ``retention`` seconds."""
    bases = await in_thread(_history(source).bases)
    return outdated(bases, datetime.now(UTC), retention)


async def _recover(
    source: Cluster, moment: Moment, target: Cluster, last: str | None, *, to_end: bool = False
) -> None:
    history = _history(source)
    found = find_base(await in_thread(history.bases), moment)
    if found is None:
        raise ClusterError(f"the history of {source.data.name} does not reach back to {moment}")
    base, settings = found
    await in_thread(history.restore, base, target.data, last)
    await in_thread(target.copy_password, source.data, target.data)
    await in_thread(target.record_settings_of, source)
    await target.recover({} if to_end else settings)


async def _is_present(source: Cluster, moment: Moment) -> bool:
    """Return whether a stopped server has changed nothing since a moment."""
    if source.running or moment.at is None:
        return False
    if await in_thread(_history(source).is_new):
        return True
    changed = await in_thread(source.stored_change)
    return changed is not None and changed <= moment.at


async def _end(source: Cluster) -> str:
    if source.running:
        async with source.session() as session:
            return await current_lsn(session)
    installation = await in_thread(source.installation)
    return await in_thread(_history(source).end_of_stopped, installation)


def _history(source: Cluster) -> History:
    if source.history is None:
        raise ClusterError("the local control plane was started without history")
    return source.history
