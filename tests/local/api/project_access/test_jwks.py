"""Where a project finds the keys of authentication providers."""

import pytest

from neonctl_async.local import LocalControlPlane, ManualClock
from tests.local.client import Client

URL = "https://auth.example.com/.well-known/jwks.json"
SPEC = {"jwks_url": URL, "provider_name": "Clerk"}


async def test_an_added_url_is_listed_and_applied_to_what_runs(
    api: Client, project_id: str
) -> None:
    added = await api.done("POST", f"/projects/{project_id}/jwks", SPEC)
    assert added["jwks"] == {
        "id": added["jwks"]["id"],
        "project_id": project_id,
        **SPEC,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }
    assert [one["action"] for one in added["operations"]] == ["apply_config"]
    assert await api.get(f"/projects/{project_id}/jwks") == {"jwks": [added["jwks"]]}


async def test_a_project_that_sleeps_has_nothing_to_apply(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(3600)
    added = await api.done("POST", f"/projects/{project_id}/jwks", SPEC)
    assert added["operations"] == []


async def test_a_url_of_a_branch_is_applied_there_alone_and_goes_with_it(
    api: Client, project_id: str
) -> None:
    branch_id = (await api.branch(project_id, compute=True))["branch"]["id"]
    body = SPEC | {"branch_id": branch_id, "jwt_audience": "shop", "role_names": ["reader"]}
    added = await api.done("POST", f"/projects/{project_id}/jwks", body)
    assert {name: added["jwks"][name] for name in body} == body
    assert [one["branch_id"] for one in added["operations"]] == [branch_id]
    await api.done("DELETE", f"/projects/{project_id}/branches/{branch_id}")
    assert await api.get(f"/projects/{project_id}/jwks") == {"jwks": []}
    path = f"/projects/{project_id}/jwks/{added['jwks']['id']}"
    assert (await api.send("DELETE", path)).status == 404


async def test_what_runs_on_a_branch_locks_the_urls_that_are_applied_there(
    clock: ManualClock,
) -> None:
    async with (
        LocalControlPlane(clock=clock, lock="branch") as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(10)
        branch_id = (await api.branch(project_id, compute=True))["branch"]["id"]
        path = f"/projects/{project_id}/jwks"
        assert (await api.send("POST", path, SPEC)).status == 423
        assert (await api.send("POST", path, SPEC | {"branch_id": branch_id})).status == 423
        assert await api.get(path) == {"jwks": []}
        main = (await api.get(f"/projects/{project_id}/branches?search=main"))["branches"][0]
        assert (await api.send("POST", path, SPEC | {"branch_id": main["id"]})).status == 201


async def test_a_deleted_url_is_shown_once_more(api: Client, project_id: str) -> None:
    kept = (await api.done("POST", f"/projects/{project_id}/jwks", SPEC))["jwks"]
    added = (await api.done("POST", f"/projects/{project_id}/jwks", SPEC))["jwks"]
    path = f"/projects/{project_id}/jwks/{added['id']}"
    other = (await api.project())["project"]["id"]
    assert (await api.send("DELETE", path.replace(project_id, other))).status == 404
    assert await api.done("DELETE", path) == added
    assert (await api.send("DELETE", path)).status == 404
    assert await api.get(f"/projects/{project_id}/jwks") == {"jwks": [kept]}


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
        ({"branch_id": "br-none"}, "br-none", 404),
    ],
)
async def test_what_does_not_fit_is_refused_by_name(
    api: Client, project_id: str, changes: dict[str, object], field: str, status: int
) -> None:
    reply = await api.send("POST", f"/projects/{project_id}/jwks", SPEC | changes)
    assert (reply.status, field in reply.message) == (status, True)
