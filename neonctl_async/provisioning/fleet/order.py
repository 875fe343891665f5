"""The order in which a fleet provisions its tenants. Pure: no I/O."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.tenants import Tenant

T = TypeVar("T")


def parents_first(tenants: Sequence[Tenant]) -> list[Tenant]:
    """Return the tenants of one project, each after the tenant that is its parent.

    Raises FleetError if a tenant is its own ancestor.
    """
    by_branch = {tenant.branch: tenant for tenant in tenants}
    ordered: dict[str, Tenant] = {}
    for tenant in tenants:
        line: dict[str, Tenant] = {}
        ancestor: Tenant | None = tenant
        while ancestor is not None and ancestor.branch not in ordered:
            if ancestor.branch in line:
                raise FleetError([f"the parents of {tenant} form a circle: {' -> '.join(line)}"])
            line[ancestor.branch] = ancestor
            ancestor = by_branch.get(ancestor.parent or "")
        ordered |= reversed(line.items())
    return list(ordered.values())


def interleaved(groups: Iterable[Sequence[T]]) -> Iterator[T]:
    """Yield the first item of each group, then the second of each, and so on.

    Neon can lock a project while it creates a branch. Consecutive tenants of different projects
    are not delayed by these locks.
    """
    queues = deque(deque(group) for group in groups)
    while queues:
        queue = queues.popleft()
        if queue:
            yield queue.popleft()
            queues.append(queue)
