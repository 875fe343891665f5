"""A local control plane with an object of every kind, so that every method can be called."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from neonctl_async import NeonClient, RateBudget, RetryPolicy
from neonctl_async.types import MaskingRule
from neonctl_local import Durations, LocalControlPlane
from tests.contract.calls import RecordedClient
from tests.contract.recorder import Recorder
from tests.support.arguments import every_argument
from tests.support.methods import Method

Names = Mapping[str, object]

REGION = "aws-us-east-2"
DOMAIN = "api.example.com"
VPC_ENDPOINT = "vpce-1234567890abcdef0"

_MASKING_RULE = MaskingRule(
    database_name="neondb",
    schema_name="public",
    table_name="people",
    column_name="email",
    masking_function="anon.dummy_free_email()",
)


class Populated:
    """A populated local control plane, with a client whose exchanges are recorded."""

    def __init__(
        self, client: RecordedClient, names: Names, by_method: Mapping[str, Names]
    ) -> None:
        self.client = client
        self._names = names
        self._by_method = by_method

    def arguments(self, method: Method) -> Mapping[str, object]:
        """Return the required arguments of a method. Ids and names are those of real objects."""
        existing = {**self._names, **self._by_method.get(str(method), {})}
        arguments = every_argument(method)
        return {name: existing.get(name, arguments[name]) for name in method.required}


@asynccontextmanager
async def populated() -> AsyncGenerator[Populated]:
    """Start and populate a local control plane whose operations take no time."""
    async with (
        LocalControlPlane(durations=Durations(default=0.0)) as control_plane,
        Recorder(control_plane.base_url) as recorder,
        NeonClient(
            control_plane.api_key,
            base_url=recorder.base_url,
            budget=RateBudget.unlimited(),
            retry=RetryPolicy(attempts=1),
        ) as neon,
    ):
        names, by_method = await populate(neon, control_plane)
        yield Populated(RecordedClient(neon, recorder), names, by_method)


async def populate(
    neon: NeonClient, control_plane: LocalControlPlane
) -> tuple[Names, Mapping[str, Names]]:
    """Create an object of every kind. Return the arguments that identify them.

    The second mapping has the arguments of the methods that need objects of their own.
    """
    names = await _names(neon, control_plane)
    return names, await _names_by_method(neon, control_plane, names)


async def _names(neon: NeonClient, control_plane: LocalControlPlane) -> dict[str, object]:
    """Create one object of each kind. Return the arguments that identify them."""
    created = await neon.projects.create(name="populated", org_id=control_plane.org_id)
    project, root = created.project.id, created.branch.id
    branch = (await neon.branches.create(project, name="child")).branch.id
    role = (await neon.roles.create(project, branch, name="someone")).role.name
    owner, database = created.roles[0].name, created.databases[0].name
    endpoint = await neon.endpoints.create(project, branch_id=branch, type="read_only")
    snapshot = await neon.snapshots.create(project, root)
    jwks = await neon.projects.add_jwks(
        project, jwks_url="https://example.com/jwks.json", provider_name="example"
    )
    permission = await neon.projects.grant_permission(project, email="friend@example.com")
    await neon.organizations.assign_vpc_endpoint(
        control_plane.org_id, REGION, VPC_ENDPOINT, label="office"
    )
    await neon.projects.assign_vpc_endpoint(project, VPC_ENDPOINT, label="office")
    await control_plane.add_member(
        control_plane.org_id, await control_plane.create_user("other", "other@example.com")
    )
    services = await _services(neon, project, branch, database)
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
        "operation_id": created.operations[0].id,
        "snapshot_id": snapshot.snapshot.id,
        "jwks_id": jwks.jwks.id,
        "permission_id": permission.id,
        "region_id": REGION,
        "vpc_endpoint_id": VPC_ENDPOINT,
        "org_id": control_plane.org_id,
        "source_org_id": control_plane.org_id,
        "destination_org_id": await control_plane.create_organization("other"),
        "member_id": next(listed.member.id for listed in members if listed.member.role == "member"),
        "key_id": (await neon.api_keys.create(key_name="personal")).id,
        **services,
    }


async def _services(neon: NeonClient, project: str, branch: str, database: str) -> Names:
    """Enable the services of a branch. Return the arguments that identify their objects."""
    await neon.auth.enable(project, branch, auth_provider="better_auth")
    auth_user = await neon.auth.create_user(project, branch, email="user@example.com")
    await neon.auth.add_oauth_provider(project, branch, id="google")
    await neon.auth.update_email_provider(
        project,
        branch,
        type="standard",
        host="mail.example.com",
        port=587,
        username="user",
        password="password",
    )
    await neon.data_api.create(project, branch, database)
    credential = await neon.credentials.create(project, branch, scopes=["storage:read"])
    await neon.custom_domains.register(
        project, branch, domain=DOMAIN, entity_type="function", entity_id="api"
    )
    return {
        "auth_user_id": auth_user.id,
        "oauth_provider_id": "google",
        "token_id": credential.token_id,
    }


async def _names_by_method(
    neon: NeonClient, control_plane: LocalControlPlane, names: Names
) -> dict[str, Names]:
    """Create the objects that only some methods accept. Return their arguments by method."""
    project = str(names["project_id"])
    deleted = await neon.branches.create(project, name="deleted")
    await neon.branches.delete(project, deleted.branch.id)
    anonymized = {"branch_id": (await neon.branches.create_anonymized(project)).branch.id}
    restored = await neon.snapshots.restore(project, str(names["snapshot_id"]))
    deleted_project = (await neon.projects.create(name="deleted")).project.id
    await neon.projects.delete(deleted_project)
    offered = (await neon.projects.create(name="offered", org_id=control_plane.org_id)).project.id
    transfer = await neon.projects.create_transfer_request(offered)
    key = await neon.organizations.create_api_key(control_plane.org_id, key_name="organization")
    without_services = {"branch_id": names["source_branch_id"]}
    now = datetime.now(UTC)
    consumed = {"from_": now - timedelta(hours=1), "to": now, "granularity": "hourly"}
    return {
        "auth.add_oauth_provider": {"id": "github"},
        "auth.enable": without_services,
        "branches.anonymize": anonymized,
        "branches.anonymized_status": anonymized,
        "branches.finalize_restore": {"branch_id": restored.branch.id},
        "branches.list_masking_rules": anonymized,
        "branches.recover": {"branch_id": deleted.branch.id},
        "branches.update_masking_rules": anonymized | {"masking_rules": [_MASKING_RULE]},
        "consumption.branches_v2": consumed | {"metrics": ["compute_unit_seconds"]},
        "consumption.projects": consumed,
        "consumption.projects_v2": consumed | {"metrics": ["extra_branches_month"]},
        "custom_domains.delete": {"domain": DOMAIN},
        "custom_domains.register": {"domain": f"www.{DOMAIN}", "entity_type": "function"},
        "data_api.create": without_services,
        "endpoints.create": {"type": "read_only"},
        "projects.connection_uri": {"role_name": names["owner_name"]},
        "organizations.revoke_api_key": {"key_id": key.id},
        "projects.accept_transfer_request": {"project_id": offered, "request_id": transfer.id},
        "projects.recover": {"project_id": deleted_project},
        "snapshots.create": {"branch_id": names["source_branch_id"]},
        "snapshots.set_schedule": {"branch_id": names["source_branch_id"]},
    }
