"""The order in which a fleet provisions its tenants. Pure: no I/O."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.tenants import Tenant

T = TypeVar("T")

BATCH: Final = 4
"""The number of consecutive tenants of one project."""


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
    """Yield the first ``BATCH`` items of each group, then the next ones of each, and so on.

    The tenants of a batch share the polls of their project. Larger batches would delay each other
    if Neon locks a project while it creates a branch.
    """
    queues = deque(deque(group) for group in groups)
    while queues:
        queue = queues.popleft()
        for _ in range(min(BATCH, len(queue))):
            yield queue.popleft()
        if queue:
            queues.append(queue)
