"""The site: which page answers, what it sends to whom, and what an attacker gets."""

import asyncio

import pytest
from yarl import URL

from neonctl_async.local import LocalControlPlane
from neonctl_async.local.console.access.headers import HEADERS
from neonctl_async.local.console.routes import PAGES, PageRoute
from tests.local.client import Client, Reply
from tests.local.console.visitor import Visitor, visiting
from tests.local.raw import connected, host_of, read_reply, reply_to

LINK = (b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document")
IDS = {
    "project_id": "late-frost-12345678",
    "branch_id": "br-late-frost-12345678",
    "endpoint_id": "ep-late-frost-12345678",
    "key_id": "1",
    "org_id": "org-late-frost-12345678",
}


def path_of(page: PageRoute, ids: dict[str, str] = IDS) -> str:
    """Return a path of a page, with ids."""
    return page.path.format_map({**dict.fromkeys(("x",)), **ids})


def name_of(page: PageRoute) -> str:
    return f"{page.method} {page.path or '/'}"


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
every_form = pytest.mark.parametrize(
    "page", [page for page in PAGES if page.method == "POST"], ids=name_of
)


@every_page
async def test_page_without_a_session_is_the_sign_in_page(
    control_plane: LocalControlPlane, page: PageRoute
) -> None:
    async with Visitor(control_plane) as visitor:
        found = await visitor.request(page.method, path_of(page), data={})
        assert found.status == 401
        assert [form.action for form in found.forms] == ["/console/sign-in"]
        assert control_plane.org_id not in found.html
        assert control_plane.user_id not in found.html
