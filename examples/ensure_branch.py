"""A branch that is made once, however often it is asked for: after a kill, or by several at once.

For fleet.py and dask_fleet.py, which run again what a process that died has begun.

- A name is given once in a project, so what may not have been made is asked for again. Where it has
  been made, even just now by a late request of a process long dead, the answer is 409.
- The operations of a branch that was there already are found in the history of the project.
"""

from datetime import timedelta

import msgspec
from tenacity import retry, retry_if_exception, stop_after_attempt

from neonctl_async import ConflictError, EndpointSpec, NeonClient, NeonError, OperationRef
from neonctl_async.types import Branch

MOMENT = timedelta(minutes=1)
"""How far apart a branch and the operations that make it may say that they were created."""
WHOLE_PAGE = 1000
"""Operations: as many as an answer can hold."""


class EnsuredBranch(msgspec.Struct, frozen=True):
    """A branch that is there, and the operations that make it ready."""

    branch_id: str
    operations: list[OperationRef]


def may_have_been_made(error: BaseException) -> bool:
    """Whether an error leaves it open: then asking again tells."""
    return isinstance(error, NeonError) and error.maybe_delivered


@retry(retry=retry_if_exception(may_have_been_made), stop=stop_after_attempt(3), reraise=True)
async def ensure_branch(
    neon: NeonClient, project_id: str, name: str, compute: EndpointSpec
) -> EnsuredBranch:
    """Ask for a branch, again if no answer tells; take over the one that has the name."""
    try:
        created = await neon.branches.create(project_id, name=name, endpoints=[compute])
    except ConflictError:
        for branch in await neon.branches.list(project_id, search=name).collect():
            if branch.name == name:
                return EnsuredBranch(branch.id, await find_operations(neon, branch))
        raise
    return EnsuredBranch(created.branch.id, [operation.ref for operation in created.operations])


async def find_operations(neon: NeonClient, branch: Branch) -> list[OperationRef]:
    """The operations that make a branch, from the history of its project."""
    found: list[OperationRef] = []
    history = neon.operations.list(branch.project_id, limit=WHOLE_PAGE)  # newest first
    async for operation in history:
        age = operation.created_at - branch.created_at
        if age < -MOMENT:
            break
        if operation.branch_id == branch.id and age < MOMENT:
            found.append(operation.ref)
    return found
