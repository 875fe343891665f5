"""Projects: sections 2.2 and 4.2 of the specification."""

from urllib.parse import quote

import pytest

from neonctl_async.local import LocalControlPlane, ManualClock
from tests.local.client import Client

SPECIFIED = {
    *("id", "name", "platform_id", "region_id", "provisioner", "pg_version", "locked"),
    *("cpu_used_sec", "proxy_host", "branch_logical_size_limit", "created_at", "updated_at"),
}


async def listed(api: Client, query: str = "", *, key: str | None = None) -> list[str]:
    """The names of the projects listed."""
    page = await api.get(f"/projects{query}", key=key)
    return [project["name"] for project in page["projects"]]


async def test_a_listed_project_has_every_field_of_the_specification(
    api: Client, project_id: str
) -> None:
    (project,) = (await api.get("/projects"))["projects"]
    assert set(project) >= SPECIFIED
    assert project["id"] == project["name"] == project_id
    assert (project["platform_id"], project["region_id"]) == ("aws", "aws-us-east-2")
    assert (project["pg_version"], project["locked"]) == (17, False)
    assert project["created_at"] == project["updated_at"] == "2026-01-01T00:00:00Z"
    assert (project["org_id"], project["owner_id"]) == (
        api.control_plane.org_id,
        api.control_plane.org_id,
    )


async def test_a_created_project_comes_with_all_that_was_made(api: Client) -> None:
    made = await api.project(name="shop", region_id="azure-eastus2", pg_version=16)
    assert (made["project"]["name"], made["project"]["platform_id"]) == ("shop", "azure")
    assert made["project"]["pg_version"] == 16
    assert (made["branch"]["name"], made["branch"]["default"]) == ("main", True)
    (endpoint,) = made["endpoints"]
    assert (endpoint["type"], endpoint["branch_id"]) == ("read_write", made["branch"]["id"])
    assert endpoint["host"].endswith(".eastus2.azure.neon.localhost")
    assert [op["action"] for op in made["operations"]] == ["create_timeline", "start_compute"]
    assert [op["status"] for op in made["operations"]] == ["running", "scheduling"]
    (role,), (database,), (uri,) = made["roles"], made["databases"], made["connection_uris"]
    assert (role["name"], database["name"]) == ("neondb_owner", "neondb")
    parameters = uri["connection_parameters"]
    assert uri["connection_uri"] == (
        f"postgresql://neondb_owner:{role['password']}@{endpoint['host']}/neondb?sslmode=require"
    )
    assert parameters["password"] == role["password"]
    assert parameters["pooler_host"] == endpoint["host"].replace(".", "-pooler.", 1)


async def test_the_first_branch_role_and_database_can_be_named(api: Client) -> None:
    branch = {"name": "trunk", "role_name": "alex", "database_name": "shop"}
    made = await api.project(branch=branch, autoscaling_limit_min_cu=1, autoscaling_limit_max_cu=2)
    assert made["branch"]["name"] == "trunk"
    assert (made["roles"][0]["name"], made["databases"][0]["owner_name"]) == ("alex", "alex")
    assert made["endpoints"][0]["autoscaling_limit_max_cu"] == 2


async def test_the_first_role_is_named_after_the_database(api: Client) -> None:
    made = await api.project(branch={"database_name": "shop"})
    assert (made["roles"][0]["name"], made["databases"][0]["owner_name"]) == ("shop_owner",) * 2


async def test_the_first_branch_can_be_annotated(api: Client) -> None:
    made = await api.project(branch={"annotations": {"team": "shop"}})
    path = f"/projects/{made['project']['id']}/branches/{made['branch']['id']}"
    assert (await api.get(path))["annotation"]["value"] == {"team": "shop"}


async def test_a_project_is_a_users_or_an_organizations(api: Client) -> None:
    own = (await api.done("POST", "/projects", {"project": {}}))["project"]
    assert ("org_id" in own, own["owner_id"]) == (False, api.control_plane.user_id)
    assert own["owner"]["email"] == "first.user@neon.localhost"
    reply = await api.send("POST", "/projects", {"project": {"org_id": "org-none"}})
    assert (reply.status, "org-none" in reply.message) == (404, True)


async def test_pages_of_projects_skip_and_repeat_nothing(api: Client) -> None:
    names = [f"p{number}" for number in range(7)]
    for name in names:
        await api.project(name=name)
    seen: list[str] = []
    cursor = ""
    for _ in range(9):
        page = await api.get(f"/projects?limit=3{cursor}")
        if not page["projects"]:
            break
        seen += [project["name"] for project in page["projects"]]
        cursor = "&cursor=" + quote(page["pagination"]["cursor"], safe="")
        await api.project(name="new")
    assert seen == names[::-1]


async def test_a_page_holds_10_projects_unless_told(api: Client) -> None:
    for _ in range(11):
        await api.project()
    assert len(await listed(api)) == 10
    assert len(await listed(api, "?limit=400")) == 11


@pytest.mark.parametrize("query", ["limit=0", "limit=401", "cursor=x", "recoverable=maybe"])
async def test_a_query_that_does_not_fit_names_the_parameter(api: Client, query: str) -> None:
    reply = await api.send("GET", f"/projects?{query}")
    assert (reply.status, query.partition("=")[0] in reply.message) == (400, True)


async def test_projects_are_searched_by_name_and_id(api: Client) -> None:
    found = await api.project(name="web shop")
    await api.project(name="other")
    assert await listed(api, "?search=shop") == ["web shop"]
    assert await listed(api, f"?search={found['project']['id']}") == ["web shop"]
    assert await listed(api, "?search=%25") == []


async def test_projects_are_listed_by_organization(api: Client) -> None:
    other = await api.control_plane.create_organization("Other")
    await api.project(name="here")
    await api.project(name="there", org_id=other)
    assert await listed(api, f"?org_id={other}") == ["there"]
    assert (await api.send("GET", "/projects?org_id=org-none")).status == 404


async def test_a_renamed_project_starts_no_operation(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    body = {"project": {"name": "new name"}}
    changed = await api.done("PATCH", f"/projects/{project_id}", body)
    assert (changed["project"]["name"], changed["operations"]) == ("new name", [])
    assert changed["project"]["updated_at"] == "2026-01-01T00:00:09Z"
    assert (await api.get(f"/projects/{project_id}"))["project"] == changed["project"]


async def test_a_new_history_retention_is_an_apply_storage_config(
    api: Client, project_id: str
) -> None:
    body = {"project": {"history_retention_seconds": 3600}}
    changed = await api.done("PATCH", f"/projects/{project_id}", body)
    assert [op["action"] for op in changed["operations"]] == ["apply_storage_config"]
    assert changed["project"]["history_retention_seconds"] == 3600
    again = await api.done("PATCH", f"/projects/{project_id}", body)
    assert again["operations"] == []


async def test_new_settings_are_applied_to_the_computes_that_run(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    await api.branch(project_id, compute=True)
    body = {"project": {"settings": {"enable_logical_replication": True}}}
    changed = await api.done("PATCH", f"/projects/{project_id}", body)
    assert [op["action"] for op in changed["operations"]] == ["apply_config", "apply_config"]
    body = {"project": {"settings": {"hipaa": True}}}
    changed = await api.done("PATCH", f"/projects/{project_id}", body)
    assert changed["project"]["settings"] == {"enable_logical_replication": True, "hipaa": True}


async def test_new_computes_take_the_default_settings_of_the_project(api: Client) -> None:
    defaults = {"autoscaling_limit_max_cu": 4, "suspend_timeout_seconds": 60}
    made = await api.project(default_endpoint_settings=defaults)
    endpoint = (await api.branch(made["project"]["id"], compute=True))["endpoints"][0]
    assert endpoint["autoscaling_limit_max_cu"] == 4
    assert endpoint["suspend_timeout_seconds"] == 60


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": ""}, "project.name"),
        ({"name": "x" * 257}, "project.name"),
        ({"pg_version": 13}, "project.pg_version"),
        ({"history_retention_seconds": -1}, "project.history_retention_seconds"),
        ({"autoscaling_limit_min_cu": 0.1}, "project.autoscaling_limit_min_cu"),
        ({"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 1}, "autoscaling_limit_min"),
        ({"branch": {"name": 1}}, "project.branch.name"),
        ({"default_endpoint_settings": {"suspend_timeout_seconds": -2}}, "default_endpoint"),
    ],
)
async def test_a_project_that_does_not_fit_names_the_field(
    api: Client, spec: object, field: str
) -> None:
    reply = await api.send("POST", "/projects", {"project": spec})
    assert (reply.status, field in reply.message) == (400, True), reply.message
    assert await listed(api) == []


async def test_a_deleted_project_is_gone_and_its_operations_are_kept(
    api: Client, project_id: str
) -> None:
    deleted = await api.done("DELETE", f"/projects/{project_id}")
    assert deleted["project"]["id"] == project_id
    assert (await api.send("GET", f"/projects/{project_id}")).status == 404
    assert (await api.send("GET", f"/projects/{project_id}/branches")).status == 404
    assert (await api.send("DELETE", f"/projects/{project_id}")).status == 404
    assert await listed(api) == []
    assert (await api.actions(project_id))[-1] == "delete_tenant"


async def test_a_member_does_not_delete_a_project(api: Client, project_id: str) -> None:
    user_id = await api.control_plane.create_user("Member", "member@example.com")
    await api.control_plane.add_member(api.control_plane.org_id, user_id)
    theirs = await api.control_plane.create_api_key("theirs", user_id=user_id)
    assert (await api.send("DELETE", f"/projects/{project_id}", key=theirs)).status == 403
    own = await api.done("POST", "/projects", {"project": {}}, key=theirs)
    path = f"/projects/{own['project']['id']}"
    assert (await api.send("DELETE", path, key=theirs)).status == 200


async def test_a_deleted_project_is_recovered_by_attaching_it(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.done("DELETE", f"/projects/{project_id}")
    (found,) = (await api.get("/projects?recoverable=true"))["projects"]
    assert found["recoverable_until"] == "2026-01-08T00:00:00Z"
    clock.advance(7 * 86400)
    recovered = await api.done("POST", f"/projects/{project_id}/recover")
    assert [branch["name"] for branch in recovered["branches"]] == ["main"]
    assert (await api.actions(project_id))[-1] == "tenant_attach"
    assert await listed(api) == [project_id]
    assert (await api.send("POST", f"/projects/{project_id}/recover")).status == 404


async def test_a_project_is_recovered_for_seven_days(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.done("DELETE", f"/projects/{project_id}")
    clock.advance(7 * 86400 + 1)
    assert (await api.send("POST", f"/projects/{project_id}/recover")).status == 404


async def test_a_users_project_is_transferred_to_an_organization(api: Client) -> None:
    own = (await api.done("POST", "/projects", {"project": {}}))["project"]["id"]
    body = {"destination_org_id": api.control_plane.org_id, "project_ids": [own]}
    assert await api.done("POST", "/users/me/projects/transfer", body) == {}
    assert (await api.get(f"/projects/{own}"))["project"]["org_id"] == api.control_plane.org_id
    assert (await api.send("POST", "/users/me/projects/transfer", body)).status == 404


async def test_a_transfer_is_whole_or_not_at_all(api: Client, project_id: str) -> None:
    other = await api.control_plane.create_organization("Other")
    path = f"/organizations/{api.control_plane.org_id}/projects/transfer"
    body = {"destination_org_id": other, "project_ids": [project_id, "none"]}
    assert (await api.send("POST", path, body)).status == 404
    assert (await api.get(f"/projects/{project_id}"))["project"][
        "org_id"
    ] == api.control_plane.org_id


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"project_ids": ["x"]}, 400),
        ({"project_ids": [], "destination_org_id": "x"}, 400),
        ({"project_ids": ["x"], "destination_org_id": "org-none"}, 404),
    ],
)
async def test_a_transfer_that_does_not_fit_is_refused(
    api: Client, body: object, status: int
) -> None:
    path = f"/organizations/{api.control_plane.org_id}/projects/transfer"
    assert (await api.send("POST", path, body)).status == status


async def test_a_transfer_takes_an_admin_and_another_organization(
    api: Client, control_plane: LocalControlPlane, project_id: str
) -> None:
    user_id = await control_plane.create_user("Member", "member@example.com")
    await control_plane.add_member(control_plane.org_id, user_id)
    theirs = await control_plane.create_api_key("theirs", user_id=user_id)
    path = f"/organizations/{control_plane.org_id}/projects/transfer"
    body = {"destination_org_id": control_plane.org_id, "project_ids": [project_id]}
    assert (await api.send("POST", path, body, key=theirs)).status == 403
    reply = await api.send("POST", path, body)
    assert (reply.status, "already belong" in reply.message) == (400, True)


async def test_deleting_and_recovering_announce_their_operations(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(10)
    deleted = await api.done("DELETE", f"/projects/{project_id}")
    assert [one["action"] for one in deleted["operations"]] == ["delete_tenant"]
    clock.advance(10)
    recovered = await api.done("POST", f"/projects/{project_id}/recover")
    assert [one["action"] for one in recovered["operations"]] == ["tenant_attach"]
