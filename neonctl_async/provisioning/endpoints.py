"""The compute methods that combine more than one request."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from msgspec import UNSET, UnsetType

from neonctl_async.errors import MismatchError
from neonctl_async.models.endpoints import EndpointSettings, EndpointType, EndpointUpdated
from neonctl_async.provisioning.attempts import adopt_or_create
from neonctl_async.provisioning.differences import compute_differences
from neonctl_async.provisioning.ensured import EnsuredEndpoint
from neonctl_async.provisioning.project_lists import ProjectLists
from neonctl_async.provisioning.readiness import Ensured, wait_until_ready
from neonctl_async.resources.base import checked_wait
from neonctl_async.resources.endpoints import DISABLED_COMPUTE, Endpoints
from neonctl_async.transport.encoding.paths import path_segment
from neonctl_async.waiting.options import Wait


class ProvisionedEndpoints(Endpoints):
    """Computes: every request of the API, and methods that combine requests.

    ``autoscaling_limit_min_cu`` and ``autoscaling_limit_max_cu`` limit the size, in compute units
    of at least 0.25. ``suspend_timeout_seconds`` is the idle time before Neon suspends a compute,
    at most 604800. 0 is Neon's default, -1 is never. For ``wait``, see
    :meth:`neon.branches.create`.
    """

    async def ensure(
        self,
        project_id: str,
        *,
        branch_id: str,
        type: str = EndpointType.READ_WRITE,
        name: str | UnsetType = UNSET,
        settings: EndpointSettings | UnsetType = UNSET,
        autoscaling_limit_min_cu: float | UnsetType = UNSET,
        autoscaling_limit_max_cu: float | UnsetType = UNSET,
        provisioner: str | UnsetType = UNSET,
        disabled: bool | UnsetType = UNSET,
        passwordless_access: bool | UnsetType = UNSET,
        suspend_timeout_seconds: int | UnsetType = UNSET,
        wait: Wait = False,
    ) -> EnsuredEndpoint:
        """Return the ``read_write`` compute of a branch. Create it if it does not exist.

        See :meth:`neon.branches.ensure`. ``read_write`` is the only ``type``: a branch may have any
        number of ``read_only`` computes, so a repeated call could not recognize its own. Create
        those with the branch, through ``endpoints`` of :meth:`neon.branches.ensure`.

        Raises MismatchError if the compute exists, but differs from a given setting. Otherwise,
        raises the errors of :meth:`create`.
        """
        if type != EndpointType.READ_WRITE:
            raise ValueError(
                f"type is {str(type)!r}: expected 'read_write', the only type that a branch has at "
                "most once; call create(), or branches.ensure() with endpoints="
            )
        path_segment("branch_id", branch_id)
        no_compute = DISABLED_COMPUTE if disabled is True else ""
        options = checked_wait(wait, no_compute=no_compute)
        creation = partial(
            self.create,
            project_id,
            branch_id=branch_id,
            type=type,
            name=name,
            settings=settings,
            autoscaling_limit_min_cu=autoscaling_limit_min_cu,
            autoscaling_limit_max_cu=autoscaling_limit_max_cu,
            provisioner=provisioner,
            disabled=disabled,
            passwordless_access=passwordless_access,
            suspend_timeout_seconds=suspend_timeout_seconds,
        )
        lists = ProjectLists(self._requester, project_id)
        ensured = await adopt_or_create(
            partial(_adopt, lists, branch_id, creation.keywords),
            partial(_create, creation),
            self._requester.retry,
        )
        return await wait_until_ready(self._requester, project_id, ensured, options)


async def _adopt(
    lists: ProjectLists, branch_id: str, wanted: Mapping[str, object]
) -> Ensured[EnsuredEndpoint] | None:
    """Return the read_write compute of a branch. Raise MismatchError if it differs."""
    computes = await lists.computes(branch_id)
    found = next((one for one in computes if one.type == EndpointType.READ_WRITE), None)
    if found is None:
        return None
    differences = compute_differences(found, wanted)
    if differences:
        raise MismatchError(
            f"compute {found.id} of branch {branch_id}",
            existing=found,
            differences=differences,
            path=f"/projects/{found.project_id}/endpoints",
        )
    operations, unexplained = await lists.work_on(None, [found])
    adopted = EnsuredEndpoint(endpoint=found, operations=operations, created=False)
    return Ensured(result=adopted, unexplained=unexplained)


async def _create(
    creation: Callable[[], Awaitable[EndpointUpdated]],
) -> Ensured[EnsuredEndpoint]:
    created = await creation()
    result = EnsuredEndpoint(endpoint=created.endpoint, operations=created.operations, created=True)
    return Ensured(result=result)
