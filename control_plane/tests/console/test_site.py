"""The site: the response to each person, to another site, and to an attacker."""

import asyncio
import io
import logging
import re
from collections.abc import AsyncIterator, Mapping

import pytest
from yarl import URL

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor, visiting
from neonctl_local import ConnectionLimits, Fault, LocalControlPlane
from neonctl_local.console import site
from neonctl_local.console.access.headers import HEADERS
from neonctl_local.console.routes import PAGES, PageRoute

IDS: Mapping[str, str] = {
    "project_id": "late-frost-12345678",
    "branch_id": "br-late-frost-12345678",
    "endpoint_id": "ep-late-frost-12345678",
    "org_id": "org-late-frost-12345678",
}
OTHER_SITE = {"Sec-Fetch-Site": "cross-site"}
LINK = OTHER_SITE | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def path_of(page: PageRoute, ids: Mapping[str, str] = IDS) -> str:
    """Return a path of a page. An id that is not in ``ids`` is 1."""
    return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], "1"), page.path)


FORMS = [page for page in PAGES if page.method == "POST"]


def refuse_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests fail that reach a page."""

    def refuse(**_parts: object) -> None:
        raise AssertionError("the request reached its page")

    monkeypatch.setattr(site, "Visit", refuse)


@pytest.fixture
def no_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests of the test fail that reach a page."""
    refuse_visits(monkeypatch)


def csrf_of(page: Page) -> str:
    """Return the token of the forms of a page."""
    (token,) = {form.fields["csrf"] for form in page.forms if form.method == "post"}
    return token


def assert_protected(page: Page) -> None:
    """Check the headers of a response."""
    assert HEADERS.items() <= dict(page.headers).items()
    assert page.headers["Cache-Control"] in {"no-store", "no-cache"}
    assert "Server" not in page.headers


@pytest.mark.usefixtures("no_visit")
async def test_page_without_a_session_is_the_sign_in_page(control_plane: LocalControlPlane) -> None:
    private = {control_plane.org_id, control_plane.user_id}
    async with Visitor(control_plane) as visitor:
        for page in PAGES:
            data = {"name": "typed"} if page.method == "POST" else None
            found = await visitor.request(page.method, path_of(page), data=data)
            assert found.status == 401, page
            assert [form.action for form in found.forms] == ["/console/sign-in"], page
            assert not private & {*re.split(r"\W", found.html)}, page
            assert_protected(found)


async def test_form_needs_the_token_of_its_session(
    control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visiting(control_plane) as visitor, visiting(control_plane) as other:
        session = await token_of(other)
        refuse_visits(monkeypatch)
        for page in FORMS:
            for data in ({}, {"csrf": ""}, {"csrf": "x" * 43}, {"csrf": session}):
                found = await visitor.request("POST", path_of(page), data=data)
                assert (found.status, "nothing was changed" in found.text) == (403, True), page
                assert_protected(found)


async def token_of(visitor: Visitor) -> str:
    """Return the token of the forms of a visitor."""
    return csrf_of(await visitor.get("/projects/new"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        OTHER_SITE,
        {"Sec-Fetch-Site": "same-site"},
        LINK,
    ],
)
async def test_form_of_another_site_is_refused(
    control_plane: LocalControlPlane, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visiting(control_plane) as visitor:
        data = {"csrf": await token_of(visitor)}
        refuse_visits(monkeypatch)
        for page in FORMS:
            found = await visitor.request("POST", path_of(page), data=data, headers=headers)
            assert found.status == 403, page
            assert_protected(found)


@pytest.mark.usefixtures("no_visit")
@pytest.mark.parametrize("path", ["", "/sign-in", "/projects/new", "/static/console.css", "/x"])
async def test_other_names_of_the_server_get_nothing(
    control_plane: LocalControlPlane, path: str
) -> None:
    async with visiting(control_plane) as visitor:
        for host in ("evil.example", "127.0.0.1:1", "localhost"):
            found = await visitor.get(path, headers={"Host": host})
            assert (found.status, "is not a name of this server" in found.text) == (421, True)
            assert "<script>" not in found.html
            assert_protected(found)


async def test_name_of_the_server_that_is_markup_is_escaped(
    control_plane: LocalControlPlane,
) -> None:
    async with Visitor(control_plane) as visitor:
        found = await visitor.get("", headers={"Host": "<b>evil</b>"})
        assert (found.status, "<b>" in found.html) == (400, False)


async def test_link_of_another_site_opens_a_page_and_nothing_else_loads_it(
    control_plane: LocalControlPlane,
) -> None:
    async with visiting(control_plane) as visitor:
        assert (await visitor.get("", headers=LINK)).status == 200
        for headers in (OTHER_SITE, LINK | {"Sec-Fetch-Dest": "iframe"}):
            for path in ("", "/static/console.css", "/sign-in"):
                found = await visitor.get(path, headers=headers)
                assert found.status == 403
                assert_protected(found)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/nothing", 404),
        ("GET", "/projects/a/b/c/d/e", 404),
        ("GET", "/static/nothing.css", 404),
        ("GET", "/static/..%2fsite.py", 404),
        ("GET", "/static/%2e%2e/site.py", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/{project_id}", 404),
        ("DELETE", "", 405),
        ("PUT", "/projects/new", 405),
        ("OPTIONS", "", 405),
        ("POST", "", 405),
        ("POST", "/static/console.css", 405),
        ("DELETE", "/sign-in", 405),
    ],
)
async def test_unknown_pages_and_methods_are_the_same_for_everyone(
    control_plane: LocalControlPlane, method: str, path: str, status: int
) -> None:
    async with Visitor(control_plane) as stranger, visiting(control_plane) as visitor:
        pages = [await one.request(method, path, encoded=True) for one in (stranger, visitor)]
    assert {page.status for page in pages} == {status}
    assert pages[0].html == pages[1].html
    for page in pages:
        assert page.headers["Content-Type"].startswith("text/html")
        assert ("Allow" in page.headers) == (status == 405)
        assert_protected(page)


async def test_address_of_a_form_without_a_page_leads_to_the_page_of_the_form(
    control_plane: LocalControlPlane,
) -> None:
    async with visiting(control_plane) as visitor:
        assert (await visitor.get("/sign-out")).path == ""


async def test_head_has_the_status_and_headers_of_get(control_plane: LocalControlPlane) -> None:
    async with visiting(control_plane) as visitor, Visitor(control_plane) as stranger:
        for page in PAGES:
            if page.method == "POST":
                continue
            assert (await stranger.request("HEAD", path_of(page))).status == 401, page
            head = await visitor.request("HEAD", path_of(page))
            if page.is_stream:
                assert head.status == 405, page
                continue
            found = await visitor.get(path_of(page))
            assert (head.status, head.html) == (found.status, ""), page
            assert_protected(head)
            assert_protected(found)


async def test_file_has_the_headers_and_a_tag(control_plane: LocalControlPlane) -> None:
    async with Visitor(control_plane) as visitor:
        page = await visitor.get("/static/console.css")
        assert (page.status, page.headers["Cache-Control"]) == (200, "no-cache")
        assert_protected(page)
        page = await visitor.get(
            "/static/console.css", headers={"If-None-Match": page.headers["ETag"]}
        )
        assert (page.status, page.html) == (304, "")
        assert_protected(page)


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("text/plain", b"csrf=1", 415),
        ("multipart/form-data; boundary=x", b"--x--\r\n", 415),
        ("application/x-www-form-urlencoded; charset=utf-16", b"csrf=1", 415),
        ("", b"", 415),
        ("application/x-www-form-urlencoded", b"a=%ff", 400),
        ("application/x-www-form-urlencoded", b"a=1&a=2", 400),
        ("application/x-www-form-urlencoded", b"a=" + b"x" * (300 << 10), 413),
        ("application/x-www-form-urlencoded", b"a=" + b"x" * (2 << 20), 413),
        ("application/x-www-form-urlencoded", b"&".join(b"%d=" % n for n in range(200)), 413),
    ],
)
@pytest.mark.usefixtures("no_visit")
async def test_body_that_is_no_form_is_refused(
    control_plane: LocalControlPlane, content_type: str, body: bytes, status: int
) -> None:
    async with visiting(control_plane) as visitor:
        for path in ("/projects/new", "/sign-in", "/sign-out"):
            found = await visitor.request(
                "POST", path, data=io.BytesIO(body), headers={"Content-Type": content_type}
            )
            assert found.status == status, found.text
            assert_protected(found)


@pytest.mark.control_plane(connections=ConnectionLimits(body=0.05))
async def test_slow_form_times_out_and_its_connection_closes(
    control_plane: LocalControlPlane,
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"csrf"
        await asyncio.sleep(0.5)

    async with visiting(control_plane) as visitor:
        found = await visitor.request(
            "POST",
            "/projects/new",
            data=slow(),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert (found.status, found.headers["Connection"]) == (408, "close")
        assert_protected(found)


async def test_two_sessions_at_once_are_no_session(control_plane: LocalControlPlane) -> None:
    async with visiting(control_plane) as visitor, visiting(control_plane) as other:
        both = f"{visitor.cookie_header()}; {other.cookie_header()}"
        assert (await visitor.get("", headers={"Cookie": both}, cookies=False)).status == 401
        forged = re.sub(r"(neonctl-console-\d+)=[\w-]+", r"\1=forged", other.cookie_header())
        both = f"{forged}; {visitor.cookie_header()}"
        assert (await visitor.get("", headers={"Cookie": both}, cookies=False)).status == 200
        large = f"{visitor.cookie_header()}; other={'x' * 7000}"
        assert (await visitor.get("", headers={"Cookie": large}, cookies=False)).status == 200
        large = f"neonctl-console-{URL(control_plane.base_url).port}={'x' * 7000}"
        assert (await visitor.get("", headers={"Cookie": large}, cookies=False)).status == 401


async def test_sessions_end_when_the_server_stops() -> None:
    control_plane = LocalControlPlane()
    await control_plane.start()
    port = URL(control_plane.base_url).port
    async with visiting(control_plane) as visitor:
        link = control_plane.console_url
        await control_plane.stop()
        again = LocalControlPlane(port=port or 0)
        async with again:
            assert (await visitor.get("")).status == 401
            assert (await visitor.sign_in(link)).status == 401


async def test_failure_of_a_page_shows_no_detail(
    control_plane: LocalControlPlane,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(**_parts: object) -> None:
        raise ZeroDivisionError("detail")

    async with visiting(control_plane) as visitor:
        monkeypatch.setattr(site, "Visit", fail)
        found = await visitor.get("")
        assert (found.status, "detail" in found.html) == (500, False)
        assert_protected(found)
    assert "a page of the console failed" in caplog.text


async def test_visits_are_no_requests_of_the_api(control_plane: LocalControlPlane) -> None:
    control_plane.inject(Fault(status=503))
    async with visiting(control_plane) as visitor:
        assert (await visitor.get("")).status == 200
    assert (control_plane.requests_served, control_plane.faults[0].fired) == (0, 0)


async def test_log_has_paths_without_tokens(
    control_plane: LocalControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    link = control_plane.console_url
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in(link)
        page = await visitor.get("/projects/new")
        await visitor.post(page, "/projects/new", name="shop")
        cookies = visitor.cookies()
    assert "GET /console/sign-in 200" in caplog.text
    secrets = (link.partition("token=")[2], csrf_of(page), *cookies.values())
    assert not [secret for secret in secrets if secret in caplog.text]


async def test_tenants_are_separate(control_plane: LocalControlPlane, api: Client) -> None:
    await api.project(name="first tenant")
    tenant = await control_plane.add_tenant()
    async with Visitor(control_plane) as visitor, visiting(control_plane) as first:
        assert (await visitor.sign_in_with_key(tenant.api_key)).status == 200
        page = await visitor.get("")
        assert (page.status, "first tenant" in page.text) == (200, False)
        assert control_plane.org_id not in page.html
        page = await visitor.post(
            await visitor.get("/projects/new"), "/projects/new", name="second tenant"
        )
        assert page.status == 200
        assert "second tenant" not in (await first.get("")).text
    assert await api.project_names() == ["first tenant"]


async def test_browser_at_the_address_of_the_server_is_led_to_the_console(api: Client) -> None:
    root = str(URL(api.base_url).origin())
    async with Visitor(api.control_plane) as visitor:
        page = {"Accept": "text/html,application/xhtml+xml"}
        async with visitor.http.get(root, headers=page, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (303, "/console")
        async with visitor.http.get(root) as response:
            assert response.status == 401  # for programs, as for every unknown path
