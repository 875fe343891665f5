"""JWKS URLs of authentication providers."""

import pytest

from control_plane.tests.client import Client, actions_of
from neonctl_local import ManualClock

URL = "https://auth.example.com/.well-known/jwks.json"
SPEC = {"jwks_url": URL, "provider_name": "Clerk"}


async def test_added_url_is_listed_and_applied_to_running_computes(
    api: Client, project_id: str
) -> None:
    added = await api.request("POST", f"/projects/{project_id}/jwks", SPEC)
    assert added["jwks"] == {
        "id": added["jwks"]["id"],
        "project_id": project_id,
        **SPEC,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }
    assert actions_of(added) == ["apply_config"]
    assert await api.get(f"/projects/{project_id}/jwks") == {"jwks": [added["jwks"]]}


async def test_adding_a_url_to_an_idle_project_starts_no_operations(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(3600)
    added = await api.request("POST", f"/projects/{project_id}/jwks", SPEC)
    assert added["operations"] == []


async def test_url_of_a_branch_is_applied_only_there_and_deleted_with_it(
    api: Client, project_id: str
) -> None:
    branch_id = (await api.branch(project_id, compute=True))["branch"]["id"]
    body = SPEC | {"branch_id": branch_id, "jwt_audience": "shop", "role_names": ["reader"]}
    added = await api.request("POST", f"/projects/{project_id}/jwks", body)
    assert {name: added["jwks"][name] for name in body} == body
    assert [operation["branch_id"] for operation in added["operations"]] == [branch_id]
    await api.request("DELETE", f"/projects/{project_id}/branches/{branch_id}")
    assert await api.get(f"/projects/{project_id}/jwks") == {"jwks": []}
    path = f"/projects/{project_id}/jwks/{added['jwks']['id']}"
    assert (await api.send("DELETE", path)).status == 404


@pytest.mark.control_plane(lock="branch")
async def test_adding_a_url_is_423_while_its_branch_is_locked(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(10)
    branch_id = (await api.branch(project_id, compute=True))["branch"]["id"]
    path = f"/projects/{project_id}/jwks"
    assert (await api.send("POST", path, SPEC)).status == 423
    assert (await api.send("POST", path, SPEC | {"branch_id": branch_id})).status == 423
    assert await api.get(path) == {"jwks": []}
    main = (await api.get(f"/projects/{project_id}/branches?search=main"))["branches"][0]
    assert (await api.send("POST", path, SPEC | {"branch_id": main["id"]})).status == 201


async def test_deletion_returns_the_deleted_url(api: Client, project_id: str) -> None:
    remaining = (await api.request("POST", f"/projects/{project_id}/jwks", SPEC))["jwks"]
    added = (await api.request("POST", f"/projects/{project_id}/jwks", SPEC))["jwks"]
    path = f"/projects/{project_id}/jwks/{added['id']}"
    other = (await api.project())["project"]["id"]
    assert (await api.send("DELETE", path.replace(project_id, other))).status == 404
    assert await api.request("DELETE", path) == added
    assert (await api.send("DELETE", path)).status == 404
    assert await api.get(f"/projects/{project_id}/jwks") == {"jwks": [remaining]}


@pytest.mark.parametrize(
    ("changes", "field", "status"),
    [
        (
            {"jwks_url": "http://auth.example.com/jwks.json"},
            "jwks_url (expected an HTTPS URL)",
            400,
        ),
        ({"jwks_url": "https://"}, "jwks_url", 400),
        ({"branch_id": ""}, "branch_id", 400),
        ({"provider_name": None}, "provider_name", 400),
        ({"role_names": ["r"] * 11}, "role_names", 400),
        ({"branch_id": "br-none"}, "branch not found", 404),
    ],
)
async def test_error_for_an_invalid_url_names_the_field(
    api: Client, project_id: str, changes: dict[str, object], field: str, status: int
) -> None:
    await api.expect_error(status, field, "POST", f"/projects/{project_id}/jwks", SPEC | changes)
