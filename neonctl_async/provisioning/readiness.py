"""Wait until an ensured object is ready, whether it was created or adopted."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.provisioning.unfinished import Unfinished, is_lasting
from neonctl_async.resources.base import Requester
from neonctl_async.waiting.options import WaitOptions
from neonctl_async.waiting.states.observed import ObservedState
from neonctl_async.waiting.states.sources import BranchSource, ComputeSource, Polls, StateSource

ResultT = TypeVar("ResultT", bound=OperationsResponse)

LASTING: Final = "created"
"""The state of an object that is neither being created nor changing."""


class LastingBranch(BranchSource, frozen=True):
    """Reads whether a branch is in a lasting state."""

    async def read(self, polls: Polls) -> ObservedState[Branch]:
        """Return the current state of the branch."""
        return _with_lasting_state(await BranchSource.read(self, polls))


class LastingCompute(ComputeSource, frozen=True):
    """Reads whether a compute is in a lasting state."""

    async def read(self, polls: Polls) -> ObservedState[Endpoint]:
        """Return the current state of the compute."""
        return _with_lasting_state(await ComputeSource.read(self, polls))


class Ensured(msgspec.Struct, Generic[ResultT], frozen=True):
    """The result of ``ensure``, and the objects whose readiness its operations do not show."""

    result: ResultT
    unexplained: Sequence[Unfinished] = ()


async def wait_until_ready(
    requester: Requester, project_id: str, ensured: Ensured[ResultT], options: WaitOptions | None
) -> ResultT:
    """Wait for the operations of a result, then for the objects without operations.

    Without options, return the result at once. Otherwise, return it with the newest records of its
    operations. An error of the wait has it as ``result``.
    """
    if options is None:
        return ensured.result
    time = asyncio.get_running_loop().time
    started = time()
    result = await requester.waiter.finish(ensured.result, options.timeout, options.on_update)
    try:
        for one in ensured.unexplained:
            left = None if options.timeout is None else max(options.timeout + started - time(), 0)
            await requester.states.wait_for(_source(project_id, one), LASTING, left)
    except NeonError as error:
        error.result = result
        raise
    return result


def _source(project_id: str, one: Unfinished) -> StateSource[Any]:
    if one.endpoint_id is None:
        return LastingBranch(project_id, one.branch_id)
    return LastingCompute(project_id, one.endpoint_id)


RecordT = TypeVar("RecordT")


def _with_lasting_state(observed: ObservedState[RecordT]) -> ObservedState[RecordT]:
    if not is_lasting(observed.state, observed.pending_state):
        return observed
    return msgspec.structs.replace(observed, state=LASTING, pending_state=None)
