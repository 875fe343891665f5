"""The headers of responses, and requests that other pages send."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from neonctl_local.console.access.headers import HEADERS, POLICY, check_fetch, secure
from neonctl_local.errors import ApiError

LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def test_policy_allows_no_inline_script_and_no_other_origin() -> None:
    directives = {
        name: value for name, _, value in (part.partition(" ") for part in POLICY.split("; "))
    }
    assert directives["default-src"] == "'none'"
    assert {*directives.values()} == {"'none'", "'self'"}
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"


def test_headers_are_added_and_storing_is_forbidden_by_default() -> None:
    response = web.Response()
    secure(response)
    assert response.headers["Cache-Control"] == "no-store"
    assert HEADERS.items() <= dict(response.headers).items()
    response = web.Response(headers={"Cache-Control": "no-cache", "X-Frame-Options": "x"})
    secure(response)
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("method", "headers", "accepted"),
    [
        ("GET", LINK, True),
        ("HEAD", LINK, True),
        ("POST", LINK, False),
        ("GET", LINK | {"Sec-Fetch-Dest": "iframe"}, False),
        ("GET", LINK | {"Sec-Fetch-Dest": "object"}, False),
        ("GET", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, False),
        ("GET", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, False),
        ("GET", {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, False),
        ("GET", {}, False),
    ],
)
def test_other_pages_may_only_link(
    site: str, method: str, headers: dict[str, str], accepted: bool
) -> None:
    def check(sent: dict[str, str]) -> None:
        check_fetch(make_mocked_request(method, "/console", headers=sent))

    for own in ("same-origin", "none", ""):
        check(headers | {"Sec-Fetch-Site": own})
    check(headers)
    if accepted:
        check(headers | {"Sec-Fetch-Site": site})
        return
    with pytest.raises(ApiError) as refused:
        check(headers | {"Sec-Fetch-Site": site})
    assert refused.value.status == 403
