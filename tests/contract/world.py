"""Something of each kind on a local control plane, for methods to be called with."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from neonctl_async import NeonClient, RateBudget, RetryPolicy
from neonctl_async.local import Durations, LocalControlPlane
from tests.contract.calls import Watched
from tests.contract.witness import Witness
from tests.support.arguments import every_argument
from tests.support.methods import Method

Names = Mapping[str, object]

REGION = "aws-us-east-2"
VPC_ENDPOINT = "vpce-1234567890abcdef0"


class World:
    """A plane with things on it, and a client whose requests a witness sees."""

    def __init__(self, client: Watched, names: Names, others: Mapping[str, Names]) -> None:
        self.client = client
        self._names = names
        self._others = others

    def arguments(self, method: Method) -> Mapping[str, object]:
        """What a method requires: what there is by that name, else any value."""
        there = {**self._names, **self._others.get(str(method), {})}
        given = {
            name: one for name, one in every_argument(method).items() if name in method.required
        }
        return {**given, **{name: there[name] for name in given if name in there}}


@asynccontextmanager
async def populated() -> AsyncGenerator[World]:
    """A world of its own, whose operations take no time."""
    async with (
        LocalControlPlane(durations=Durations(default=0.0)) as control_plane,
        Witness(control_plane.base_url) as witness,
        NeonClient(
            control_plane.api_key,
            base_url=witness.base_url,
            budget=RateBudget.unlimited(),
            retry=RetryPolicy(attempts=1),
        ) as neon,
    ):
        names = await _things(neon, control_plane)
        yield World(Watched(neon, witness), names, await _others(neon, control_plane, names))


async def _things(neon: NeonClient, control_plane: LocalControlPlane) -> dict[str, object]:
    """What parameters of a name stand for."""
    made = await neon.projects.create(name="world", org_id=control_plane.org_id)
    project, root = made.project.id, made.branch.id
    branch = (await neon.branches.create(project, name="child")).branch.id
    role = (await neon.roles.create(project, branch, name="someone")).role.name
    owner, database = made.roles[0].name, made.databases[0].name
    endpoint = await neon.endpoints.create(project, branch_id=branch, type="read_only")
    snapshot = await neon.snapshots.create(project, root)
    jwks = await neon.projects.add_jwks(
        project, jwks_url="https://example.com/jwks.json", provider_name="example"
    )
    permission = await neon.projects.grant_permission(project, email="friend@example.com")
    await neon.organizations.assign_vpc_endpoint(
        control_plane.org_id, REGION, VPC_ENDPOINT, label="there"
    )
    await neon.projects.assign_vpc_endpoint(project, VPC_ENDPOINT, label="there")
    await control_plane.add_member(
        control_plane.org_id, await control_plane.create_user("other", "other@example.com")
    )
    members = await neon.organizations.list_members(control_plane.org_id).collect()
    return {
        "project_id": project,
        "project_ids": [project],
        "branch_id": branch,
        "source_branch_id": root,
        "role_name": role,
        "owner_name": owner,
        "database_name": database,
        "db_name": database,
        "endpoint_id": endpoint.endpoint.id,
        "operation_id": made.operations[0].id,
        "snapshot_id": snapshot.snapshot.id,
        "jwks_id": jwks.jwks.id,
        "permission_id": permission.id,
        "region_id": REGION,
        "vpc_endpoint_id": VPC_ENDPOINT,
        "org_id": control_plane.org_id,
        "source_org_id": control_plane.org_id,
        "destination_org_id": await control_plane.create_organization("other"),
        "member_id": next(one.member.id for one in members if one.member.role == "member"),
        "key_id": (await neon.api_keys.create(key_name="mine")).id,
    }


async def _others(
    neon: NeonClient, control_plane: LocalControlPlane, names: Names
) -> dict[str, Names]:
    """What some methods need instead."""
    project = str(names["project_id"])
    deleted = await neon.branches.create(project, name="deleted")
    await neon.branches.delete(project, deleted.branch.id)
    anonymized = {"branch_id": (await neon.branches.create_anonymized(project)).branch.id}
    restored = await neon.snapshots.restore(project, str(names["snapshot_id"]))
    gone = (await neon.projects.create(name="gone")).project.id
    await neon.projects.delete(gone)
    offered = (await neon.projects.create(name="offered", org_id=control_plane.org_id)).project.id
    transfer = await neon.projects.create_transfer_request(offered)
    key = await neon.organizations.create_api_key(control_plane.org_id, key_name="ours")
    return {
        "branches.anonymize": anonymized,
        "branches.anonymized_status": anonymized,
        "branches.finalize_restore": {"branch_id": restored.branch.id},
        "branches.list_masking_rules": anonymized,
        "branches.recover": {"branch_id": deleted.branch.id},
        "branches.update_masking_rules": anonymized,
        "endpoints.create": {"type": "read_only"},
        "projects.connection_uri": {"role_name": names["owner_name"]},
        "organizations.revoke_api_key": {"key_id": key.id},
        "projects.accept_transfer_request": {"project_id": offered, "request_id": transfer.id},
        "projects.recover": {"project_id": gone},
    }
