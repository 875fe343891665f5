"""A populated local control plane in a thread, for clients that block."""

import random
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from unittest import mock

from anyio.from_thread import BlockingPortal, start_blocking_portal

from control_plane.tests.conformance.published.rules import NOW
from neonctl_async import NeonClient, RateBudget
from neonctl_local import Durations, LocalControlPlane, ManualClock, ids
from tests.contract.populated import Names, populate

ROUTES: Mapping[str, str] = {
    "auth.enable": "POST /projects/{project_id}/branches/{branch_id}/auth",
    "branches.anonymize": "POST /projects/{project_id}/branches/{branch_id}/anonymize",
    "branches.anonymized_status": (
        "GET /projects/{project_id}/branches/{branch_id}/anonymized_status"
    ),
    "branches.finalize_restore": (
        "POST /projects/{project_id}/branches/{branch_id}/finalize_restore"
    ),
    "branches.list_masking_rules": "GET /projects/{project_id}/branches/{branch_id}/masking_rules",
    "branches.recover": "POST /projects/{project_id}/branches/{branch_id}/recover",
    "branches.update_masking_rules": (
        "PATCH /projects/{project_id}/branches/{branch_id}/masking_rules"
    ),
    "custom_domains.delete": (
        "DELETE /projects/{project_id}/branches/{branch_id}/custom-domains/{domain}"
    ),
    "data_api.create": "POST /projects/{project_id}/branches/{branch_id}/data-api/{database_name}",
    "organizations.revoke_api_key": "DELETE /organizations/{org_id}/api_keys/{key_id}",
    "projects.accept_transfer_request": (
        "PUT /projects/{project_id}/transfer_requests/{request_id}"
    ),
    "projects.connection_uri": "GET /projects/{project_id}/connection_uri",
    "projects.recover": "POST /projects/{project_id}/recover",
    "snapshots.create": "POST /projects/{project_id}/branches/{branch_id}/snapshot",
    "snapshots.set_schedule": "PUT /projects/{project_id}/branches/{branch_id}/backup_schedule",
}
"""The routes of the methods that need objects of their own."""


class RepeatableIds:
    """Stands for the modules ``secrets`` and ``uuid``, with the same values in every run.

    Later requests contain the ids of earlier responses. So all requests of a run are repeatable.
    """

    def __init__(self) -> None:
        self._random = random.Random(0)

    def restart(self) -> None:
        """Start a sequence of values that no object of the populated control plane has."""
        self._random.seed(1)

    def choice(self, words: Sequence[str]) -> str:
        return self._random.choice(words)

    def randbelow(self, limit: int) -> int:
        return self._random.randrange(limit)

    def token_hex(self, count: int) -> str:
        return self._random.randbytes(count).hex()

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._random.randbytes(16), version=4)


class Plane:
    """The control plane and the ids of its objects. :meth:`reset` undoes all changes."""

    def __init__(
        self,
        portal: BlockingPortal,
        control_plane: LocalControlPlane,
        repeatable_ids: RepeatableIds,
        names: Names,
        by_route: Mapping[str, Names],
    ) -> None:
        self._portal = portal
        self._control_plane = control_plane
        self._ids = repeatable_ids
        self._names = names
        self._by_route = by_route
        self.base_url = control_plane.base_url
        self.api_key = control_plane.api_key

    def names(self, operation: str) -> Names:
        """Return the ids and names that a request of an operation can use."""
        return {**self._names, **self._by_route.get(operation, {})}

    def reset(self) -> None:
        """Return to the data right after the start."""
        self._portal.call(self._control_plane.reset)
        self._ids.restart()


@contextmanager
def plane_in_thread() -> Generator[Plane]:
    """Run and populate a local control plane whose operations take no time."""
    control_plane = LocalControlPlane(durations=Durations(default=0.0), clock=ManualClock(NOW))
    repeatable_ids = RepeatableIds()
    with (
        mock.patch.multiple(ids, secrets=repeatable_ids, uuid=repeatable_ids),
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(control_plane),
    ):
        names, by_route = portal.call(_populate, control_plane)
        yield Plane(portal, control_plane, repeatable_ids, names, by_route)


async def _populate(control_plane: LocalControlPlane) -> tuple[Names, Mapping[str, Names]]:
    """Create all objects. Return their names, and those for single operations."""
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, budget=RateBudget.unlimited()
    ) as neon:
        names, by_method = await populate(neon, control_plane)
        own = (await neon.projects.create(name="own")).project.id
        computes = await neon.endpoints.list(str(names["project_id"]))
    await control_plane.save()
    by_route = {
        ROUTES[method]: dict(own_names)
        for method, own_names in by_method.items()
        if method in ROUTES
    }
    [compute] = [compute for compute in computes if compute.branch_id == names["source_branch_id"]]
    connection = {"branch_id": compute.branch_id, "endpoint_id": compute.id}
    by_route["GET /projects/{project_id}/connection_uri"] |= connection
    # The other branch has a Data API, and so it cannot expire.
    branch = "/projects/{project_id}/branches/{branch_id}"
    by_route[f"PATCH {branch}"] = by_route[f"GET {branch}/anonymized_status"]
    by_route["POST /users/me/projects/transfer"] = {"project_id": own}
    by_route["PUT /projects/{project_id}/transfer_requests/{request_id}"] |= {
        "org_id": names["destination_org_id"]
    }
    return names, by_route
