"""Signing in and out: links, keys, the page to open next, and what was typed before."""

import asyncio
import logging
import re

import pytest
from yarl import URL

from control_plane.tests.client import Client, Http
from control_plane.tests.console.visitor import Page, Visitor, visiting
from neonctl_local import LocalControlPlane
from neonctl_local.console.access.sessions import Attempts
from neonctl_local.console.access.sign_in import draft_of, next_path
from neonctl_local.server.tenants.state import TenantState


def cookie_of(page: Page) -> str:
    """Return the cookie that a response sets for the session."""
    sent = [line for line in page.cookies if "-sign-in=" not in line]
    assert len(sent) == 1, page.cookies
    return sent[0]


async def test_link_signs_in_the_first_user_once(control_plane: LocalControlPlane) -> None:
    link = control_plane.console_url
    async with Visitor(control_plane) as visitor, Visitor(control_plane) as other:
        page = await visitor.sign_in(link)
        assert page.status == 200
        assert 'http-equiv="refresh" content="0; url=/console"' in page.html
        assert (await visitor.get("")).status == 200
        page = await other.sign_in(link)
        assert (page.status, "used before" in page.text) == (401, True)
        assert (await other.get("")).status == 401


async def test_cookie_is_strict_hidden_from_scripts_and_expires(
    control_plane: LocalControlPlane,
) -> None:
    async with Visitor(control_plane) as visitor:
        cookie = cookie_of(await visitor.sign_in(control_plane.console_url))
    port = URL(control_plane.base_url).port
    name, *attributes = cookie.split("; ")
    assert re.fullmatch(rf"neonctl-console-{port}=[\w-]{{43}}", name)
    assert set(attributes) == {"HttpOnly", "Max-Age=43200", "Path=/console", "SameSite=Strict"}


async def test_opening_the_link_again_keeps_the_session(control_plane: LocalControlPlane) -> None:
    link = control_plane.console_url
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in(link)
        page = await visitor.sign_in(link)
        assert (page.status, page.path) == (200, "")
        assert (await visitor.get("/sign-in")).path == ""


async def test_new_session_replaces_the_session_of_the_browser(
    control_plane: LocalControlPlane,
) -> None:
    async with Visitor(control_plane) as visitor:
        first = cookie_of(await visitor.sign_in(control_plane.console_url))
        second = cookie_of(await visitor.sign_in(control_plane.console_url))
        assert first != second
        first_value = first.partition(";")[0]
        page = await visitor.get("", headers={"Cookie": first_value}, cookies=False)
        assert page.status == 401


async def test_cookie_that_the_visitor_chose_is_never_a_session(
    control_plane: LocalControlPlane,
) -> None:
    async with Visitor(control_plane) as visitor:
        name = f"neonctl-console-{URL(control_plane.base_url).port}"
        visitor.http.cookie_jar.update_cookies({name: "chosen"}, URL(control_plane.base_url))
        cookie = cookie_of(await visitor.sign_in(control_plane.console_url))
        assert "chosen" not in cookie


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", {}),
        ("GET", {"Sec-Purpose": "prefetch;prerender"}),
        ("GET", {"Sec-Purpose": "prefetch"}),
    ],
)
async def test_early_request_does_not_use_up_the_link(
    control_plane: LocalControlPlane, method: str, headers: dict[str, str]
) -> None:
    link = control_plane.console_url
    async with Visitor(control_plane) as visitor:
        path = link.partition("/console")[2]
        assert (await visitor.request(method, path, headers=headers)).status == 503
        assert (await visitor.sign_in(link)).status == 200


async def test_link_on_a_page_of_another_site_needs_a_confirmation(
    control_plane: LocalControlPlane,
) -> None:
    link = control_plane.console_url
    headers = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    async with Visitor(control_plane) as visitor:
        page = await visitor.get(link.partition("/console")[2], headers=headers)
        assert (await visitor.get("")).status == 401
        page = await visitor.post(page, "/sign-in")
        assert (page.status, page.path) == (200, "")


async def test_personal_key_signs_in(control_plane: LocalControlPlane, api: Client) -> None:
    key = await api.new_user_key("second@neon.invalid")
    async with Visitor(control_plane) as visitor:
        page = await visitor.sign_in_with_key(f" {key}\n")
        assert (page.status, page.path) == (200, "")
        assert key not in page.html


async def test_link_can_be_pasted_into_the_form(control_plane: LocalControlPlane) -> None:
    async with Visitor(control_plane) as visitor:
        page = await visitor.sign_in_with_key(control_plane.console_url)
        assert (page.status, page.path) == (200, "")


async def test_other_keys_are_refused(control_plane: LocalControlPlane, api: Client) -> None:
    path = f"{api.organization_path}/api_keys"
    organization_key = (await api.request("POST", path, {"key_name": "o"}))["key"]
    revoked = await api.request("POST", "/api_keys", {"key_name": "r"})
    await api.request("DELETE", f"/api_keys/{revoked['id']}")
    async with Visitor(control_plane) as visitor:
        for key, status, words in (
            ("", 401, "the API key is missing"),
            ("neon_api_key_unknown", 401, "the API key is unknown"),
            ("ä\u202e\x00", 401, "the API key is unknown"),
            (revoked["key"], 401, "was revoked"),
            (organization_key, 403, "enter a personal API key"),
            ("http://127.0.0.1/console/sign-in?token=x", 401, "was used before"),
            ("token=", 401, "was used before"),
        ):
            page = await visitor.sign_in_with_key(key)
            assert (page.status, words in page.text) == (status, True), (key, page.text)
            assert not key or key not in page.html
            assert (await visitor.get("")).status == 401


async def test_session_ends_when_its_key_is_revoked(
    control_plane: LocalControlPlane, api: Client
) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "lost"})
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in_with_key(created["key"])
        assert (await visitor.get("")).status == 200
        await api.request("DELETE", f"/api_keys/{created['id']}")
        page = await visitor.get("")
        assert (page.status, "was revoked" in page.text) == (401, True)
        assert "key" in page.form("/sign-in").fields
        page = await visitor.get("")
        assert (page.status, "was revoked" in page.text) == (401, False)  # no session is left


async def test_link_of_a_key_ends_with_the_key(
    control_plane: LocalControlPlane, api: Client
) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "lost"})
    address = str(URL(api.base_url).origin())
    async with Http(address, created["key"]) as outside:
        path = "/local/v1/console_links"
        links = [f"{address}{(await outside.request('POST', path))['path']}" for _ in range(2)]
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in(links[0])
        assert (await visitor.get("")).status == 200
        await api.request("DELETE", f"/api_keys/{created['id']}")
        assert (await visitor.get("")).status == 401
        await visitor.sign_in(links[1])
        page = await visitor.get("")
    assert (page.status, "was revoked" in page.text) == (401, True)


async def test_session_ends_when_its_user_is_deleted(
    control_plane: LocalControlPlane, api: Client
) -> None:
    key = await api.new_user_key("second@neon.invalid")
    async with Visitor(control_plane) as visitor, visiting(control_plane) as first:
        await visitor.sign_in_with_key(key)
        await control_plane.reset()
        page = await visitor.get("")
        assert (page.status, "your account was deleted" in page.text) == (401, True)
        assert (await first.get("")).status == 200


async def test_sign_out_ends_the_session(control_plane: LocalControlPlane) -> None:
    async with visiting(control_plane) as visitor:
        cookie = visitor.cookie_header()
        assert (await visitor.get("/sign-out")).path == ""
        page = await visitor.request("POST", "/sign-out", data={"csrf": "wrong"})
        assert page.status == 403
        page = await visitor.sign_out()
        assert (page.status, page.path) == (200, "/sign-in")
        assert (await visitor.get("")).status == 401
        page = await visitor.get("", headers={"Cookie": cookie}, cookies=False)
        assert page.status == 401


@pytest.mark.parametrize("values", [{"csrf": ""}, {"csrf": "x" * 64}])
async def test_sign_in_form_needs_the_token_of_its_visitor(
    control_plane: LocalControlPlane, values: dict[str, str]
) -> None:
    async with Visitor(control_plane) as visitor:
        page = await visitor.get("/sign-in")
        page = await visitor.post(page, "/sign-in", key=control_plane.api_key, **values)
        assert (page.status, "out of date" in page.text) == (403, True)
        assert (await visitor.get("")).status == 401


async def test_sign_in_form_of_another_visitor_is_refused(control_plane: LocalControlPlane) -> None:
    async with Visitor(control_plane) as visitor, Visitor(control_plane) as other:
        page, _ = await visitor.get("/sign-in"), await other.get("/sign-in")
        page = await other.post(page, "/sign-in", key=control_plane.api_key)
        assert page.status == 403


async def test_attempts_are_bounded_and_a_link_still_works(
    control_plane: LocalControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Visitor(control_plane) as visitor:
        form = await visitor.get("/sign-in")
        statuses = [
            (await visitor.post(form, "/sign-in", key=f"neon_api_key_{number}")).status
            for number in range(Attempts.MAXIMUM + 2)
        ]
        assert statuses == [401] * Attempts.MAXIMUM + [429] * 2
        page = await visitor.post(form, "/sign-in", key=control_plane.api_key)
        assert page.status == 429
        assert 0 < int(page.headers["Retry-After"]) <= 60
        assert (await visitor.get("/sign-in?token=wrong")).status == 429
        assert (await visitor.sign_in(control_plane.console_url)).status == 200
        assert (await visitor.get("")).status == 200
    assert "neon_api_key_1" not in caplog.text
    assert control_plane.api_key not in caplog.text


async def test_successful_attempt_forgets_the_failed_ones(control_plane: LocalControlPlane) -> None:
    async with Visitor(control_plane) as visitor:
        for _ in range(2):
            form = await visitor.get("/sign-in")
            for number in range(Attempts.MAXIMUM - 1):
                page = await visitor.post(form, "/sign-in", key=f"neon_api_key_{number}")
                assert page.status == 401
            assert (await visitor.sign_in_with_key(control_plane.api_key)).status == 200
            await visitor.sign_out()


async def test_many_attempts_at_the_same_time_are_bounded_and_cheap(
    control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = TenantState.issued
    searches: list[str | None] = []

    async def count(tenant: TenantState, authorization: str | None) -> bool:
        searches.append(authorization)
        return await issued(tenant, authorization)

    monkeypatch.setattr(TenantState, "issued", count)
    async with Visitor(control_plane) as visitor:
        form = await visitor.get("/sign-in")
        pages = await asyncio.gather(
            *(visitor.post(form, "/sign-in", key=f"neon_api_key_{n}") for n in range(50))
        )
        assert sorted(page.status for page in pages) == [401] * 10 + [429] * 40
        assert len(searches) == 10


async def test_page_that_was_requested_opens_after_the_sign_in(
    control_plane: LocalControlPlane,
) -> None:
    async with Visitor(control_plane) as visitor:
        page = await visitor.get("/projects/new?a=b&c=%2F")
        assert page.status == 401
        page = await visitor.post(page, "/sign-in", key=control_plane.api_key)
        assert (page.status, page.path) == (200, "/projects/new?a=b&c=/")


async def test_form_of_an_ended_session_is_kept_until_after_the_sign_in(
    control_plane: LocalControlPlane,
) -> None:
    async with visiting(control_plane) as visitor:
        form = await visitor.get("/projects/new")
        await visitor.sign_out()
        page = await visitor.post(form, "/projects/new", name='a"<b>\n')
        assert (page.status, "nothing was changed" in page.text) == (401, True)
        page = await visitor.post(page, "/sign-in", key="neon_api_key_wrong")
        assert page.status == 401
        page = await visitor.post(page, "/sign-in", key=control_plane.api_key)
        assert (page.status, page.path) == (200, "/projects/new")
        assert page.form("/projects/new").fields["name"] == 'a"<b>\n'
        assert "Nothing was changed yet" in page.text
        assert (await visitor.get("/projects/new")).form("/projects/new").fields["name"] == ""


async def test_form_of_an_earlier_session_is_kept(control_plane: LocalControlPlane) -> None:
    async with visiting(control_plane) as visitor:
        form = await visitor.get("/projects/new")
        await visitor.sign_in(control_plane.console_url)
        page = await visitor.post(form, "/projects/new", name="shop")
        assert (page.status, "out of date" in page.text) == (403, True)
        assert "/console/projects/new" in page.links
        page = await visitor.get("/projects/new")
        assert page.form("/projects/new").fields["name"] == "shop"
    assert not control_plane.requests


@pytest.mark.parametrize(
    "path",
    [
        *("/console", "/console/", "/console/projects/new", "/console?a=b", "/console/a.b/c?x=//y"),
        *("/console/projects/late-frost-1/operations?branch=br-1&status=OK", "/console/a%20b"),
    ],
)
def test_paths_of_the_console_are_opened_next(path: str) -> None:
    assert next_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/api/v2/projects", "/consolex", "//evil.example", "/console//evil.example"),
        *("https://evil.example/console", "javascript:alert(1)", "console", "/\\evil.example"),
        *("/console/..//evil.example", "/console/../api", "/console/..", "/console/./a"),
        *("/console/%2e%2e/api", "/console/%2E./api", "/console/a%2f..%2f..", "/console\\..\\a"),
        *("/console/%5c", "/console/%0d%0aX: y", "/console/\r\nX: y", "/console/\t", "/console/ a"),
        *("/console/\u202e", "/console/%E2%80%AE", "/console/sign-in", "/console/sign-out//"),
        *("/console/sign-in?token=x", "/%63onsole//x", "/console/" + "x" * 2000, "/console\x00"),
    ],
)
def test_other_paths_are_not_opened_next(path: str) -> None:
    assert next_path(path) == "/console"


def test_secrets_and_long_forms_are_not_kept() -> None:
    typed = {"name": "a", "csrf": "b", "key": "c", "password": "d", "token": "e"}
    assert draft_of(typed) == {"name": "a"}
    assert draft_of({"statement": "x" * (1 << 20)}) == {}
    assert draft_of({str(number): "" for number in range(100)}) == {}
