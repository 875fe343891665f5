"""Access levels of keys: sections 2.1 and 3.1 of the specification."""

import re

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key, organization_key, project_key
from neonctl_local.server.routes import ROUTES


async def test_organization_is_404_for_users_outside_it(api: Client) -> None:
    user_key = await api.new_user_key("stranger@example.com")
    path = f"{api.organization_path}/api_keys"
    for method, body in (("GET", None), ("POST", {"key_name": "k"})):
        assert (await api.send(method, path, body, key=user_key)).status == 404


async def test_personal_key_accesses_own_projects_and_those_of_the_users_organizations(
    api: Client, project_id: str
) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    _, user_key = await member_key(api)
    lists = [await api.get("/projects", key=key) for key in (api.key, user_key)]
    ids = [{project["id"] for project in listed["projects"]} for listed in lists]
    assert ids == [{own, project_id}, {project_id}]
    assert (await api.send("GET", f"/projects/{own}", key=user_key)).status == 404
    stranger = await api.new_user_key("stranger@example.com")
    assert (await api.send("GET", f"/projects/{project_id}", key=stranger)).status == 404


async def test_organization_key_has_admin_access_to_the_whole_organization(
    api: Client, project_id: str
) -> None:
    _, token = await organization_key(api)
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    listed = await api.get("/projects", key=token)
    assert [project["id"] for project in listed["projects"]] == [project_id]
    assert (await api.send("GET", f"/projects/{own}", key=token)).status == 404
    created = await api.request("POST", "/projects", {"project": {}}, key=token)
    assert created["project"]["org_id"] == api.control_plane.org_id
    assert (await api.send("DELETE", f"/projects/{project_id}", key=token)).status == 200


@pytest.mark.fact("keys-6")
async def test_project_scoped_key_accesses_only_its_project(api: Client, project_id: str) -> None:
    other = (await api.project())["project"]["id"]
    _, token = await project_key(api, project_id)
    listed = await api.get("/projects", key=token)
    assert [project["id"] for project in listed["projects"]] == [project_id]
    branch = await api.send("POST", f"/projects/{project_id}/branches", {}, key=token)
    assert branch.status == 201
    for path in (f"/projects/{other}", f"/projects/{other}/operations"):
        assert (await api.send("GET", path, key=token)).status == 404


@pytest.mark.fact("keys-6")
async def test_project_scoped_key_cannot_delete_or_create_projects(
    api: Client, project_id: str
) -> None:
    _, token = await project_key(api, project_id)
    deletion = await api.send("DELETE", f"/projects/{project_id}", key=token)
    creation = await api.send("POST", "/projects", {"project": {}}, key=token)
    assert (deletion.status, creation.status) == (403, 403)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 200


@pytest.mark.fact("keys-6")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/organizations/{org}", None),
        ("GET", "/organizations/{org}/members", None),
        ("GET", "/organizations/{org}/api_keys", None),
        ("POST", "/organizations/{org}/api_keys", {"key_name": "k"}),
        ("DELETE", "/organizations/{org}/api_keys/1", None),
        (
            "POST",
            "/organizations/{org}/projects/transfer",
            {"destination_org_id": "org-x", "project_ids": ["x"]},
        ),
        ("GET", "/users/me", None),
        ("GET", "/api_keys", None),
    ],
)
async def test_project_scoped_key_cannot_act_on_organizations_or_accounts(
    api: Client, project_id: str, method: str, path: str, body: object
) -> None:
    _, token = await project_key(api, project_id)
    reply = await api.send(method, path.replace("{org}", api.control_plane.org_id), body, key=token)
    assert reply.status == 403


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if route.method == "GET" and "{org_id}" in route.path]
)
async def test_project_scoped_key_reads_nothing_of_its_organization(
    api: Client, project_id: str, path: str
) -> None:
    _, token = await project_key(api, project_id)
    path = re.sub(r"{\w+}", "1", path.replace("{org_id}", api.control_plane.org_id))
    await api.expect_error(403, "project-scoped", "GET", path, key=token)


@pytest.mark.parametrize("kind", ["organization", "project-scoped"])
async def test_key_of_another_organization_is_404(api: Client, project_id: str, kind: str) -> None:
    other = await api.control_plane.create_organization("Other")
    key = await (organization_key(api) if kind == "organization" else project_key(api, project_id))
    for path in (f"/organizations/{other}", f"/organizations/{other}/api_keys"):
        await api.expect_error(404, other, "GET", path, key=key[1])


async def test_user_who_leaves_an_organization_loses_access_to_its_projects(
    api: Client, project_id: str
) -> None:
    user_id, user_key = await member_key(api)
    await api.control_plane.remove_member(api.control_plane.org_id, user_id)
    assert (await api.send("GET", f"/projects/{project_id}", key=user_key)).status == 404
    assert (await api.get("/users/me", key=user_key))["id"] == user_id
