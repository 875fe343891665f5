"""Wait until an ensured object is ready, whether it was created or adopted."""

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Annotation, Branch
from neonctl_async.models.endpoints import Endpoint, EndpointType
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.provisioning.project_lists import ProjectLists
from neonctl_async.provisioning.unfinished import Unfinished, is_lasting
from neonctl_async.resources.base import CallRunner
from neonctl_async.transport.calls import Deadline
from neonctl_async.waiting.states.sources import (
    BranchSource,
    ComputeSource,
    ObservedState,
    StateSource,
)
from neonctl_async.waiting.waiter import WaitOptions

ResultT = TypeVar("ResultT", bound=OperationsResponse)

LASTING: Final = "created"
"""The state of an object that is neither being created nor changing."""


class LastingBranch(BranchSource, frozen=True):
    """Reads whether a branch is in a lasting state."""

    def observed(self, branch: Branch, annotation: Annotation | None) -> ObservedState[Branch]:
        """Return the state in a record."""
        return _with_lasting_state(BranchSource.observed(self, branch, annotation))


class LastingCompute(ComputeSource, frozen=True):
    """Reads whether a compute is in a lasting state."""

    def observed(self, endpoint: Endpoint) -> ObservedState[Endpoint]:
        """Return the state in a record."""
        return _with_lasting_state(ComputeSource.observed(self, endpoint))


class Ensured(msgspec.Struct, Generic[ResultT], frozen=True, kw_only=True):
    """The result of ``ensure``, and what a wait for it needs besides the operations."""

    result: ResultT
    unexplained: Sequence[Unfinished] = ()
    """The objects that are not ready, but have no operation."""
    branch_id: str | None = None
    """The branch of an adopted object, if the result does not contain the computes."""


class _Computes(OperationsResponse, kw_only=True):
    """The operations of a result, and the computes to connect to."""

    endpoints: list[Endpoint]


async def wait_until_ready(
    runner: CallRunner, project_id: str, ensured: Ensured[ResultT], options: WaitOptions | None
) -> ResultT:
    """Wait for the operations of a result, for objects without operations, and for connections.

    Without options, return the result at once. Otherwise, return it with the latest records of its
    operations. If the wait fails, its error contains the result as ``result``.
    """
    if options is None:
        return ensured.result
    deadline = Deadline(options.timeout)
    result = await runner.waiter.finish(ensured.result, options.timeout, options.on_update)
    deadline.extend_if_missed()
    try:
        for one in ensured.unexplained:
            await runner.states.wait_until(_source(project_id, one), LASTING, deadline)
        if options.connect and ensured.branch_id is not None:
            computes = await ProjectLists(runner, project_id).computes(ensured.branch_id)
            writers = [one for one in computes if one.type == EndpointType.READ_WRITE]
            await runner.connect(
                _Computes(operations=result.operations, endpoints=writers), deadline
            )
        elif options.connect:
            await runner.connect(result, deadline)
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
