"""Account settings > API keys: sections 2.1, 3.1 and 5 of the specification."""

import logging

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import signed_in, token_of
from control_plane.tests.console.visitor import Page, Visitor
from neonctl_local import ManualClock

KEYS = "/account/keys"
NEW = f"{KEYS}/new"


async def create(visitor: Visitor, name: str = "laptop") -> Page:
    """Create a personal key. Return the page that shows it."""
    return await visitor.post(await visitor.get(NEW), NEW, name=name)


async def test_first_key_is_created_in_the_console_and_others_with_it(
    api: Client, visitor: Visitor
) -> None:
    page = await create(visitor)
    assert page.status == 200
    token = token_of(page)
    assert "It is shown only once" in page.text
    assert f"export NEON_API_HOST={api.base_url}" in page.text
    me = await api.get("/users/me", key=token)
    assert me["id"] == api.control_plane.user_id
    further = await api.request("POST", "/api_keys", {"key_name": "further"}, key=token)
    assert (await api.get("/users/me", key=further["key"]))["id"] == me["id"]


async def test_curl_line_reads_the_key_from_the_environment(api: Client, visitor: Visitor) -> None:
    page = await create(visitor)
    line = f'curl -H "Authorization: Bearer $NEON_API_KEY" {api.base_url}/users/me'
    assert line in page.text


async def test_created_key_is_shown_once(visitor: Visitor) -> None:
    page = await create(visitor)
    token = token_of(page)
    assert "no-store" in page.headers["Cache-Control"]
    assert token not in page.path
    again = await visitor.get(page.path)
    assert (again.path, again.status) == (KEYS, 200)
    assert "is shown only once" in again.text
    assert token not in again.html
    assert token not in (await visitor.get(KEYS)).html


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_script_or_probe_does_not_take_the_created_key(visitor: Visitor, method: str) -> None:
    posted = await visitor.get(NEW)
    fields = posted.form(NEW).fields | {"name": "laptop"}
    redirect = await visitor.request("POST", NEW, data=fields, allow_redirects=False)
    path = redirect.headers["Location"].removeprefix("/console")
    headers = {"Console-Refresh": "1"} if method == "GET" else {}
    await visitor.request(method, path, headers=headers, allow_redirects=False)
    assert token_of(await visitor.get(path))


async def test_two_keys_that_are_created_at_once_are_both_shown(visitor: Visitor) -> None:
    form = (await visitor.get(NEW)).form(NEW)
    paths: list[str] = []
    for name in ("one", "two"):
        data = form.fields | {"name": name}
        page = await visitor.request("POST", NEW, data=data, allow_redirects=False)
        paths.append(page.headers["Location"].removeprefix("/console"))
    pages = [await visitor.get(path) for path in paths]
    assert ["Key one" in pages[0].text, "Key two" in pages[1].text] == [True, True]


async def test_created_key_is_hidden_from_other_sessions(api: Client, visitor: Visitor) -> None:
    form = (await visitor.get(NEW)).form(NEW)
    data = form.fields | {"name": "laptop"}
    redirect = await visitor.request("POST", NEW, data=data, allow_redirects=False)
    path = redirect.headers["Location"].removeprefix("/console")
    async with signed_in(api, api.control_plane.api_key) as other:
        assert "NEON_API_KEY" not in (await other.get(path)).text
    assert token_of(await visitor.get(path))


async def test_list_shows_creator_creation_and_last_use(
    api: Client, visitor: Visitor, clock: ManualClock
) -> None:
    token = token_of(await create(visitor, "CI"))
    assert "CI 2 2026-01-01 00:00:00 UTC by First User never" in (await visitor.get(KEYS)).text
    clock.advance(61)
    await api.get("/users/me", key=token)
    text = (await visitor.get(KEYS)).text
    assert "by First User 2026-01-01 00:01:01 UTC from 127.0.0.1" in text


async def test_list_shows_only_the_own_keys(api: Client, visitor: Visitor) -> None:
    await create(visitor, "mine")
    async with signed_in(api, await api.new_user_key("bea@example.com")) as bea:
        page = await bea.get(KEYS)
        assert "user key" in page.text
        assert "mine" not in page.text


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb"])
async def test_refused_name_is_explained_and_kept(visitor: Visitor, name: str) -> None:
    page = await create(visitor, name)
    assert page.status == 400
    assert "key_name" in page.text
    assert page.form(NEW).fields["name"] == name
    assert "by First User" in (await visitor.get(KEYS)).text


async def test_name_with_markup_is_escaped(visitor: Visitor) -> None:
    await create(visitor, "<b>\u202e&quot;")
    html = (await visitor.get(KEYS)).html
    assert "&lt;b&gt;\u202e&amp;quot;</bdi>" in html


async def test_revocation_is_confirmed_and_takes_effect_at_once(
    api: Client, visitor: Visitor
) -> None:
    token = token_of(await create(visitor))
    path = f"{KEYS}/2/revoke"
    assert f"/console{path}" in (await visitor.get(KEYS)).links
    confirmation = await visitor.get(path)
    assert "takes effect at once and is permanent" in confirmation.text
    await api.get("/users/me", key=token)
    page = await visitor.post(confirmation, path)
    assert (page.path, page.status) == (KEYS, 200)
    assert "API key revoked" in page.text
    assert (await api.send("GET", "/users/me", key=token)).status == 401
    assert (await visitor.post(confirmation, path)).status == 404


async def test_only_the_owner_revokes_a_personal_key(api: Client, visitor: Visitor) -> None:
    async with signed_in(api, await api.new_user_key("bea@example.com")) as bea:
        path = f"{KEYS}/1/revoke"
        assert (await bea.get(path)).status == 404
        data = (await bea.get(NEW)).form(NEW).fields
        assert (await bea.request("POST", path, data=data)).status == 404
    assert (await api.send("GET", "/users/me")).status == 200
    assert (await visitor.get(path)).status == 200


async def test_revocation_of_the_key_of_the_sign_in_ends_the_session(api: Client) -> None:
    key = await api.new_user_key("bea@example.com")
    async with signed_in(api, key) as bea:
        path = f"{KEYS}/2/revoke"
        confirmation = await bea.get(path)
        assert "its revocation signs you out" in confirmation.text
        assert (await bea.post(confirmation, path)).status == 401


async def test_empty_list_shows_the_next_step(api: Client, visitor: Visitor) -> None:
    await api.request("DELETE", "/api_keys/1")
    page = await visitor.get(KEYS)
    assert "You have no API keys" in page.text
    assert page.links.count(f"/console{NEW}") == 2


async def test_long_list_has_pages_and_a_search(api: Client, visitor: Visitor) -> None:
    assert "Search" not in (await visitor.get(KEYS)).text
    for number in range(60):
        await api.control_plane.create_api_key(f"key of job {number}")
    first = await visitor.get(KEYS)
    assert "1 to 50 of 61" in first.text
    second = await visitor.get(f"{KEYS}?page=2")
    assert "first key" in second.text
    assert f"/console{KEYS}?page=1" in second.links
    found = await visitor.get(f"{KEYS}?search=JOB+5")
    assert "11 of 61 match" in found.text
    assert "job 59" in found.text
    none = await visitor.get(f"{KEYS}?search=nothing")
    assert "No key matches the search" in none.text


async def test_key_is_in_no_log(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        token = token_of(await create(visitor))
        await visitor.get(KEYS)
    assert token not in caplog.text


async def test_lost_key_is_revoked_and_replaced(api: Client, visitor: Visitor) -> None:
    lost = token_of(await create(visitor, "lost"))
    path = f"{KEYS}/2/revoke"
    await visitor.post(await visitor.get(path), path)
    new = token_of(await create(visitor, "new"))
    statuses = [(await api.send("GET", "/users/me", key=key)).status for key in (lost, new)]
    assert statuses == [401, 200]
