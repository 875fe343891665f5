"""A person who visits pages without a browser: keeps cookies, reads pages, posts forms."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from html.parser import HTMLParser
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from neonctl_local import LocalControlPlane


class Form:
    """A form of a page: its action, and the fields with the values that the page gives them."""

    def __init__(self, action: str, method: str) -> None:
        self.action = action
        self.method = method
        self.fields: dict[str, str] = {}
        self.unchecked: set[str] = set()
        self.buttons: list[str] = []


class Page(HTMLParser):
    """A page that was received: its status, headers, text, links and forms."""

    def __init__(self, status: int, headers: Mapping[str, str], path: str, html: str) -> None:
        super().__init__()
        self.status = status
        self.headers = headers
        self.path = path
        self.html = html
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.text = ""
        self.cookies: list[str] = []
        self._select = ""
        self._textarea = ""
        self.feed(html)

    def form(self, action: str) -> Form:
        """Return the form with this action below ``/console``: the one to post, if it has both."""
        found = [form for form in self.forms if form.action == f"/console{action}"]
        (form,) = [form for form in found if form.method == "post"] or found
        return form

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            action = given.get("action") or f"/console{self.path}"
            self.forms.append(Form(action, given.get("method", "get")))
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif self.forms:
            self._add_field(tag, given)

    def _add_field(self, tag: str, given: dict[str, str]) -> None:
        form, name = self.forms[-1], given.get("name", "")
        if tag == "input" and name:
            is_choice = given.get("type") in {"checkbox", "radio"}
            if not is_choice or "checked" in given:
                form.fields[name] = given.get("value", "")
            else:
                form.unchecked.add(name)
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select:
            if "selected" in given or self._select not in form.fields:
                form.fields[self._select] = given.get("value", "")
        elif tag == "textarea" and name:
            self._textarea = name
            form.fields[name] = ""
        elif tag == "button":
            form.buttons.append(given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea" and self.forms:
            # Browsers ignore a line feed after the start tag.
            fields = self.forms[-1].fields
            fields[self._textarea] = fields[self._textarea].removeprefix("\n")
            self._textarea = ""

    def handle_data(self, data: str) -> None:
        if self._textarea and self.forms:
            self.forms[-1].fields[self._textarea] += data
        self.text += f" {' '.join(data.split())}" if data.strip() else ""


class Visitor:
    """Visits the console of a local control plane. Paths are relative to ``/console``."""

    def __init__(self, control_plane: LocalControlPlane) -> None:
        parts = urlsplit(control_plane.base_url)
        self._server = f"{parts.scheme}://{parts.netloc}"
        self.http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.http.close()

    def url(self, path: str, *, encoded: bool = False) -> URL:
        """Return the URL of a page."""
        return URL(f"{self._server}/console{path}", encoded=encoded)

    async def sign_in(self, console_url: str) -> Page:
        """Sign in with the link of a control plane."""
        return await self.get(console_url.removeprefix(f"{self._server}/console"))

    async def sign_in_with_key(self, key: str) -> Page:
        """Sign in with a personal API key."""
        page = await self.get("/sign-in")
        return await self.post(page, "/sign-in", key=key)

    async def sign_out(self) -> Page:
        """Post a form to sign out, as the menu of each page does."""
        page = await self.get("/projects/new")
        csrf = page.form("/projects/new").fields["csrf"]
        return await self.request("POST", "/sign-out", data={"csrf": csrf})

    def cookies(self) -> dict[str, str]:
        """Return the values of the cookies."""
        return {cookie.key: cookie.value for cookie in self.http.cookie_jar}

    def cookie_header(self) -> str:
        """Return the cookies as a header."""
        return "; ".join(f"{name}={value}" for name, value in self.cookies().items())

    # Any: as request.
    async def get(self, path: str, **options: Any) -> Page:
        """Return a page, after redirects."""
        return await self.request("GET", path, **options)

    async def post(self, page: Page, action: str, **values: str | None) -> Page:
        """Fill in the form of a page that has this action, and post it. Return the next page.

        A value of None clears a checkbox.
        """
        form = page.form(action)
        assert form.method == "post"
        unknown = values.keys() - form.fields.keys() - form.unchecked
        assert not unknown, f"the form has no fields {unknown}, only {list(form.fields)}"
        filled = form.fields | values
        data = {name: value for name, value in filled.items() if value is not None}
        return await self.request("POST", action, data=data)

    # Any: the options of aiohttp.
    async def request(
        self, method: str, path: str, *, cookies: bool = True, encoded: bool = False, **options: Any
    ) -> Page:
        """Send a request as a browser does, and return the page after redirects.

        Without ``cookies``, the cookies of this visitor are not sent. With ``encoded``, the path is
        sent unchanged.
        """
        url = self.url(path, encoded=encoded)
        if method == "POST":
            options["headers"] = {"Origin": self._server} | options.get("headers", {})
        async with AsyncExitStack() as stack:
            http = self.http
            if not cookies:
                jar = aiohttp.DummyCookieJar()
                http = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
            response = await stack.enter_async_context(http.request(method, url, **options))
            path = response.url.path_qs.removeprefix("/console")
            page = Page(response.status, response.headers, path, await response.text())
            page.cookies = response.headers.getall("Set-Cookie", [])
            return page


@asynccontextmanager
async def visiting(control_plane: LocalControlPlane) -> AsyncGenerator[Visitor]:
    """Sign in the first user."""
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in(control_plane.console_url)
        yield visitor
