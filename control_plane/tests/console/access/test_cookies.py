"""The cookies that a browser sends, including those of other servers on the same host."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from neonctl_local.console.access import cookies


def request_with(*values: str) -> web.Request:
    """Return a request with these Cookie headers."""
    headers = CIMultiDict[str]([("Host", "127.0.0.1:8080")])
    for value in values:
        headers.add("Cookie", value)
    return make_mocked_request("GET", "/console", headers=headers)


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ((), []),
        (("neonctl-console-8080=a",), ["a"]),
        (("x=1; neonctl-console-8080=a;y=2",), ["a"]),
        (("neonctl-console-8080=a; neonctl-console-8080=b",), ["a", "b"]),
        (("neonctl-console-8080=a", "neonctl-console-8080=b"), ["a", "b"]),
        (("neonctl-console-8080=a; neonctl-console-8080=a",), ["a"]),
        (("neonctl-console-80=a; neonctl-console-8080-sign-in=b; Neonctl-console-8080=c",), []),
        (("neonctl-console-8080", "=;;=; ;neonctl-console-8080=="), ["", "="]),
    ],
)
def test_values_of_the_session_cookie_are_found(sent: tuple[str, ...], found: list[str]) -> None:
    assert cookies.session_cookies(request_with(*sent)) == found


def test_ambiguous_cookie_of_the_sign_in_form_is_ignored() -> None:
    name = "neonctl-console-8080-sign-in"
    assert cookies.visitor_cookie(request_with(f"{name}=a")) == "a"
    assert cookies.visitor_cookie(request_with(f"{name}=a; {name}=b")) == ""
    assert cookies.visitor_cookie(request_with()) == ""


def test_cookies_are_set_and_deleted_for_the_console_only() -> None:
    response = web.Response()
    request = request_with()
    cookies.set_session(request, response, "a")
    cookies.set_visitor(request, response, "b")
    session, visitor = (morsel.OutputString() for morsel in response.cookies.values())
    assert session == (
        "neonctl-console-8080=a; HttpOnly; Max-Age=43200; Path=/console; SameSite=Strict"
    )
    assert visitor == "neonctl-console-8080-sign-in=b; HttpOnly; Path=/console; SameSite=Strict"
    cookies.delete_session(request, response)
    assert response.cookies["neonctl-console-8080"]["max-age"] == "0"
