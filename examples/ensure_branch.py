"""Create a branch exactly once, even if many processes request it or a process is killed.

fleet.py and dask_fleet.py use this module to repeat the work of killed processes.

- Branch names are unique in a project, so a creation with an unknown result can be repeated. If the
  branch exists, perhaps by a late request of a killed process, the response is 409.
- The operations of an existing branch are found in the history of the project.
"""

from datetime import timedelta

import msgspec
from tenacity import retry, retry_if_exception, stop_after_attempt

from neonctl_async import ConflictError, EndpointSpec, NeonClient, NeonError, OperationRef
from neonctl_async.types import Branch

MAX_GAP = timedelta(minutes=1)
"""The longest time between the creation of a branch and of its first operations."""
PAGE = 1000
"""The largest page of operations."""


class EnsuredBranch(msgspec.Struct, frozen=True):
    """An existing branch, and the operations that make it ready."""

    branch_id: str
    operations: list[OperationRef]


def may_have_been_created(error: BaseException) -> bool:
    """Return whether the request may have been executed; then a repetition shows the result."""
    return isinstance(error, NeonError) and error.maybe_delivered


@retry(retry=retry_if_exception(may_have_been_created), stop=stop_after_attempt(3), reraise=True)
async def ensure_branch(
    neon: NeonClient, project_id: str, name: str, compute: EndpointSpec
) -> EnsuredBranch:
    """Create a branch, or return the existing one of this name."""
    try:
        created = await neon.branches.create(project_id, name=name, endpoints=[compute])
    except ConflictError:
        for branch in await neon.branches.list(project_id, search=name).collect():
            if branch.name == name:
                return EnsuredBranch(branch.id, await find_operations(neon, branch))
        raise
    return EnsuredBranch(created.branch.id, [operation.ref for operation in created.operations])


async def find_operations(neon: NeonClient, branch: Branch) -> list[OperationRef]:
    """Return the operations that created a branch, from the history of its project."""
    found: list[OperationRef] = []
    history = neon.operations.list(branch.project_id, limit=PAGE)  # newest first
    async for operation in history:
        age = operation.created_at - branch.created_at
        if age < -MAX_GAP:
            break
        if operation.branch_id == branch.id and age < MAX_GAP:
            found.append(operation.ref)
    return found
