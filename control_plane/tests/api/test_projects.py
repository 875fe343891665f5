"""Creating, reading and listing projects: sections 2.2 and 4.2 of the specification."""

import pytest

from control_plane.tests.client import Client, actions_of

SPECIFIED = {
    *("id", "name", "platform_id", "region_id", "provisioner", "pg_version", "locked"),
    *("cpu_used_sec", "proxy_host", "branch_logical_size_limit", "created_at", "updated_at"),
}


@pytest.mark.fact("projects-1", "projects-18")
async def test_listed_project_has_the_specified_fields(api: Client, project_id: str) -> None:
    (project,) = (await api.get("/projects"))["projects"]
    assert set(project) >= SPECIFIED
    assert project["id"] == project["name"] == project_id
    assert (project["platform_id"], project["region_id"]) == ("aws", "aws-us-east-2")
    assert (project["pg_version"], project["locked"]) == (18, False)
    assert project["created_at"] == project["updated_at"] == "2026-01-01T00:00:00Z"
    assert project["org_id"] == project["owner_id"] == api.control_plane.org_id


@pytest.mark.fact("branches-1", "projects-5")
async def test_create_project_response_contains_all_created_objects(api: Client) -> None:
    created = await api.project(name="shop", region_id="azure-eastus2", pg_version=16)
    assert (created["project"]["name"], created["project"]["platform_id"]) == ("shop", "azure")
    assert created["project"]["pg_version"] == 16
    assert (created["branch"]["name"], created["branch"]["default"]) == ("main", True)
    (endpoint,) = created["endpoints"]
    assert (endpoint["type"], endpoint["branch_id"]) == ("read_write", created["branch"]["id"])
    assert endpoint["host"].endswith(".eastus2.azure.neon.invalid")
    assert actions_of(created) == ["create_timeline", "start_compute"]
    assert [op["status"] for op in created["operations"]] == ["running", "scheduling"]
    (role,), (database,) = created["roles"], created["databases"]
    (uri,) = created["connection_uris"]
    assert (role["name"], database["name"]) == ("neondb_owner", "neondb")
    parameters = uri["connection_parameters"]
    assert uri["connection_uri"] == (
        f"postgresql://neondb_owner:{role['password']}@{endpoint['host']}/neondb?sslmode=require"
    )
    assert parameters["password"] == role["password"]
    assert parameters["pooler_host"] == endpoint["host"].replace(".", "-pooler.", 1)


async def test_names_of_the_first_branch_role_and_database_can_be_set(api: Client) -> None:
    branch = {"name": "trunk", "role_name": "alex", "database_name": "shop"}
    sizes = {"autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": 2}
    created = await api.project(branch=branch, **sizes)
    assert created["branch"]["name"] == "trunk"
    assert (created["roles"][0]["name"], created["databases"][0]["owner_name"]) == ("alex", "alex")
    assert created["endpoints"][0]["autoscaling_limit_max_cu"] == 2


@pytest.mark.fact("roles-1")
async def test_first_role_is_named_after_the_database(api: Client) -> None:
    created = await api.project(branch={"database_name": "shop"})
    (role,), (database,) = created["roles"], created["databases"]
    assert role["name"] == database["owner_name"] == "shop_owner"


async def test_first_role_of_a_database_with_a_long_name_has_at_most_63_characters(
    api: Client,
) -> None:
    created = await api.project(branch={"database_name": "x" * 63})
    assert created["roles"][0]["name"] == f"{'x' * 57}_owner"


async def test_first_branch_can_have_annotations(api: Client) -> None:
    created = await api.project(branch={"annotations": {"team": "shop"}})
    path = f"/projects/{created['project']['id']}/branches/{created['branch']['id']}"
    assert (await api.get(path))["annotation"]["value"] == {"team": "shop"}


async def test_project_belongs_to_a_user_or_an_organization(api: Client) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]
    assert ("org_id" in own, own["owner_id"]) == (False, api.control_plane.user_id)
    assert own["owner"]["email"] == "first.user@neon.invalid"
    body = {"project": {"org_id": "org-none"}}
    await api.expect_error(404, "org-none", "POST", "/projects", body)


@pytest.mark.fact("projects-16")
async def test_pages_skip_and_repeat_no_project(api: Client) -> None:
    names = [f"p{number}" for number in range(7)]
    for name in names:
        await api.project(name=name)
    listed_names: list[str] = []
    cursor = ""
    for _ in range(9):
        page = await api.get(f"/projects?limit=3{cursor}")
        if not page["projects"]:
            break
        listed_names += [project["name"] for project in page["projects"]]
        assert page["pagination"]["cursor"] == page["projects"][-1]["id"]
        cursor = f"&cursor={page['pagination']['cursor']}"
        await api.project(name="new")
    assert listed_names == names[::-1]


async def test_page_has_10_projects_by_default(api: Client) -> None:
    for _ in range(11):
        await api.project()
    assert len(await api.project_names()) == 10
    assert len(await api.project_names("?limit=400")) == 11


@pytest.mark.parametrize("query", ["limit=0", "limit=401", "cursor=x", "recoverable=maybe"])
async def test_error_for_an_invalid_query_parameter_names_it(api: Client, query: str) -> None:
    await api.expect_error(400, query.partition("=")[0], "GET", f"/projects?{query}")


async def test_projects_are_searched_by_name_and_id(api: Client) -> None:
    found = await api.project(name="web shop")
    await api.project(name="other")
    assert await api.project_names("?search=shop") == ["web shop"]
    assert await api.project_names(f"?search={found['project']['id']}") == ["web shop"]
    assert await api.project_names("?search=%25") == []


@pytest.mark.fact("orgs-7")
async def test_projects_are_listed_by_organization(api: Client) -> None:
    other = await api.control_plane.create_organization("Other")
    await api.project(name="here")
    await api.project(name="there", org_id=other)
    assert await api.project_names(f"?org_id={other}") == ["there"]
    assert (await api.send("GET", "/projects?org_id=org-none")).status == 404


async def test_new_computes_have_the_default_settings_of_the_project(api: Client) -> None:
    defaults = {"autoscaling_limit_max_cu": 4, "suspend_timeout_seconds": 60}
    created = await api.project(default_endpoint_settings=defaults)
    endpoint = (await api.branch(created["project"]["id"], compute=True))["endpoints"][0]
    assert endpoint["autoscaling_limit_max_cu"] == 4
    assert endpoint["suspend_timeout_seconds"] == 60


@pytest.mark.control_plane(require_org_id=True)
async def test_personal_key_names_an_organization_if_the_server_requires_it(api: Client) -> None:
    words = "org_id is required, you can find it on your organization settings page"
    await api.expect_error(400, words, "GET", "/projects")
    await api.expect_error(400, words, "POST", "/projects", {"project": {"name": "shop"}})
    await api.project(name="shop")
    assert await api.project_names(f"?org_id={api.control_plane.org_id}") == ["shop"]


@pytest.mark.fact("orgs-7")
@pytest.mark.control_plane(require_org_id=True)
async def test_other_keys_name_no_organization(api: Client) -> None:
    created = await api.request("POST", f"{api.organization_path}/api_keys", {"key_name": "fleet"})
    await api.request("POST", "/projects", {"project": {"name": "shop"}}, key=created["key"])
    assert (await api.get("/projects", key=created["key"]))["projects"][0]["name"] == "shop"


@pytest.mark.fact("projects-3", "projects-4")
async def test_settings_are_complete_also_where_none_was_chosen(api: Client) -> None:
    created = (await api.project())["project"]
    path = f"/projects/{created['id']}"
    (listed,) = (await api.get("/projects"))["projects"]
    for project in (created, (await api.get(path))["project"], listed):
        assert project["settings"] == {
            "allowed_ips": {"ips": [], "protected_branches_only": False},
            "enable_logical_replication": False,
            "maintenance_window": {"weekdays": [5], "start_time": "07:00", "end_time": "08:00"},
            "block_public_connections": False,
            "block_vpc_connections": False,
            "hipaa": False,
        }
        assert project["default_endpoint_settings"] == {
            "autoscaling_limit_min_cu": 0.25,
            "autoscaling_limit_max_cu": 0.25,
            "suspend_timeout_seconds": 0,
        }


async def test_chosen_settings_are_shown_beside_those_of_neon(api: Client) -> None:
    settings = {"allowed_ips": {"ips": ["192.0.2.1"]}, "quota": {"active_time_seconds": 60}}
    sizes = {"autoscaling_limit_min_cu": 2}
    created = await api.project(settings=settings, default_endpoint_settings=sizes)
    shown = created["project"]["settings"]
    assert shown["allowed_ips"] == {"ips": ["192.0.2.1"], "protected_branches_only": False}
    assert (shown["quota"], shown["hipaa"]) == (settings["quota"], False)
    assert created["project"]["default_endpoint_settings"]["autoscaling_limit_max_cu"] == 2
    [endpoint] = created["endpoints"]
    assert endpoint["autoscaling_limit_max_cu"] == 2
