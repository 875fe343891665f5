"""Hints: errors that name the probable mistake."""

import asyncio

import pytest

from neonctl_async import APIError, InvalidResponseError, NeonClient, NotFoundError
from neonctl_async.transport.hints import address_hint, id_hint, org_hint, wrong_id
from neonctl_local import LocalControlPlane
from tests.support.records import API_KEY, PROJECT, operation, responding
from tests.support.server import MisbehavingServer, http_response, in_sequence

PAGE = b"\n<!DOCTYPE html><title>Not found</title>"
NEON = "https://console.neon.tech"


@pytest.mark.parametrize("base_url", [NEON, f"{NEON}/api", "https://proxy.example.com/neon"])
@pytest.mark.parametrize(
    ("status", "is_json"), [(404, True), (404, False), (405, True), (301, False), (403, False)]
)
def test_base_url_without_a_version_is_shown_with_the_remedy(
    base_url: str, status: int, is_json: bool
) -> None:
    hint = address_hint(base_url, status, is_json=is_json)
    assert f"the base URL {base_url} has no version segment" in hint
    remedy = f"{base_url}/v2" if base_url.endswith("/api") else f"{base_url}/api/v2"
    assert hint.endswith(f"set NEON_API_HOST or base_url to {remedy}")


@pytest.mark.parametrize("base_url", [f"{NEON}/api/v2", f"{NEON}/api/v2/projects"])
@pytest.mark.parametrize("status", [200, 302, 404, 405])
def test_page_from_another_server_is_shown_with_the_base_url(base_url: str, status: int) -> None:
    hint = address_hint(base_url, status, is_json=False)
    assert hint.startswith(f"this is no response of the Neon API: check the base URL {base_url} ")


@pytest.mark.parametrize(
    ("base_url", "status", "is_json"),
    [
        *((f"{NEON}/api/v2", status, True) for status in (301, 400, 401, 404, 405, 500)),
        *((f"{NEON}/api/v2", status, False) for status in (400, 401, 403, 429, 500, 502)),
        *((NEON, status, True) for status in (400, 401, 403, 409, 429)),
        *((NEON, status, is_json) for status in (500, 502, 503) for is_json in (True, False)),
    ],
)
def test_other_errors_have_no_hint(base_url: str, status: int, is_json: bool) -> None:
    assert address_hint(base_url, status, is_json=is_json) == ""


async def test_local_control_plane_without_the_version_segment_gets_a_hint() -> None:
    async with LocalControlPlane() as server:
        host = server.base_url.removesuffix("/api/v2")
        async with NeonClient(server.api_key, base_url=host) as neon:
            with pytest.raises(NotFoundError) as caught:
                await neon.projects.list().collect()
        remedy = f"set NEON_API_HOST or base_url to {server.base_url}"
    assert caught.value.hint in str(caught.value)
    assert caught.value.hint.endswith(remedy)
    assert caught.value.message == "there is no path '/projects': all paths start with /api/v2"


@pytest.mark.parametrize(
    ("status", "kind"), [(200, InvalidResponseError), (302, APIError), (404, NotFoundError)]
)
async def test_web_page_gets_a_hint(
    status: int, kind: type[APIError] | type[InvalidResponseError]
) -> None:
    async with responding(http_response(status, body=PAGE)) as (_, neon):
        with pytest.raises(kind) as caught:
            await neon.projects.get(PROJECT)
    assert caught.value.hint in str(caught.value)
    assert f"check the base URL {neon.base_url} " in caught.value.hint


async def test_proxy_with_another_path_gets_no_hint_after_its_first_success() -> None:
    missing = http_response(404, {"message": "branch not found"})
    responses = in_sequence(http_response(content={"projects": []}), missing)
    async with MisbehavingServer(responses) as server:
        address = server.base_url.replace("/api/v2", "/neon")
        async with NeonClient(API_KEY, base_url=address) as neon:
            assert await neon.projects.list().collect() == []
            with pytest.raises(NotFoundError, match=r"branch not found \(request") as caught:
                await neon.branches.get(PROJECT, "br-gone-12345678")
    assert caught.value.hint == ""


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (f"/projects/{PROJECT}", ""),
        (f"/projects/{PROJECT}/branches/br-quiet-sun-87654321", ""),
        (f"/projects/{PROJECT}/operations/no-uuid", ""),
        (f"/projects/{PROJECT}/branches/br-1/databases/no%20such", ""),
        (
            "/projects/My%20shop",
            "'My shop' does not look like an id: ids of projects are like 'late-frost-",
        ),
        (
            f"/projects/{PROJECT}/branches/preview%2F7/endpoints",
            "'preview/7' does not look like an id: ids of branches start with 'br-'",
        ),
        (
            f"/projects/{PROJECT}/endpoints/main/start",
            "'main' does not look like an id: ids of endpoints start",
        ),
        (f"/projects/{PROJECT}/snapshots/snap-late-leaf-11223344/restore", ""),
        (
            f"/projects/{PROJECT}/snapshots/nightly",
            "'nightly' does not look like an id: ids of snapshots start with 'snap-'",
        ),
        (
            "/organizations/acme/api_keys",
            "'acme' does not look like an id: ids of organizations start with 'org-'",
        ),
    ],
)
def test_name_in_place_of_an_id_is_shown(path: str, hint: str) -> None:
    assert id_hint(path).startswith(hint)
    assert bool(id_hint(path)) is bool(hint)


@pytest.mark.parametrize(
    "path",
    [
        "/projects/auth/keys",
        "/projects/auth/transfer_ownership",
        "/projects/shared",
        f"/projects/{PROJECT}/branches/count",
        "/users/me/projects/transfer",
    ],
)
def test_word_in_the_path_of_an_endpoint_is_no_name(path: str) -> None:
    assert id_hint(path) == ""


@pytest.mark.control_plane(require_org_id=True)
async def test_missing_organization_is_reported_with_the_next_step(neon: NeonClient) -> None:
    for request in (neon.projects.list().collect(), neon.projects.create(name="shop")):
        with pytest.raises(APIError, match="org_id is required") as caught:
            await request
        assert caught.value.hint in str(caught.value)
        for step in ("org_id=", "users.organizations()"):
            assert step in caught.value.hint


@pytest.mark.parametrize(
    ("status", "message"), [(400, "name is required"), (404, "org_id is required"), (400, "")]
)
def test_other_error_has_no_hint_at_an_organization(status: int, message: str) -> None:
    assert org_hint(status, message) == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "branch_id is None: expected a string"),
        (7.5, "branch_id is a float: expected a string"),
        (operation(), "branch_id is a Operation: pass its id, as in record.id"),
    ],
)
def test_value_that_is_no_id_is_shown_with_the_next_step(value: object, words: str) -> None:
    assert wrong_id("branch_id", value) == words


async def test_call_in_place_of_an_id_is_to_be_awaited() -> None:
    call = asyncio.sleep(0)
    assert wrong_id("branch_id", call) == (
        "branch_id is a coroutine: await the call, and pass the id of its result"
    )
    await call


async def test_404_for_a_name_has_a_hint(neon: NeonClient) -> None:
    project = (await neon.projects.create(name="shop", wait=True)).project
    with pytest.raises(
        NotFoundError, match="'main' does not look like an id: ids of branches start with 'br-'"
    ):
        await neon.branches.get(project.id, "main")
