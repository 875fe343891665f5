"""Errors for paths and methods without a route."""

import pytest

from neonctl_local.api.description.published import description
from neonctl_local.api.description.unserved import refusal
from neonctl_local.server.routes import ROUTE_NAMES

FUNCTIONS = "/projects/{project_id}/branches/{branch_id}/functions"


def refused(method: str, path: str) -> tuple[int, str, str | None]:
    """Return the status, the message and the allowed methods of a request without a route."""
    error = refusal(method, path, ROUTE_NAMES)
    return error.status, error.message, error.headers.get("Allow")


def test_published_endpoint_that_is_not_served_is_501() -> None:
    for name in set(description().endpoints) - ROUTE_NAMES:
        method, _, template = name.partition(" ")
        path = template.replace("{", "").replace("}", "")
        status, message, _ = refused(method, path)
        assert (status, name in message) == (501, True), name


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/projects", "GET, POST"),
        ("PATCH", "/projects/shared", "GET"),
        ("DELETE", "/projects/p/branches/count", "GET"),
        ("DELETE", "/projects/p/branches/b/functions", "GET"),
        ("PUT", "/projects/p/branches/b/functions/f", "DELETE, GET, PATCH"),
    ],
)
def test_wrong_method_is_405_with_the_methods_that_exist(
    method: str, path: str, allowed: str
) -> None:
    status, message, header = refused(method, path)
    assert (status, header) == (405, allowed)
    assert message == f"{method} is not allowed on {path!r}: use {allowed}"


def test_fixed_part_of_a_path_can_be_percent_encoded() -> None:
    assert refused("DELETE", "/projects/%73hared")[0] == 405


@pytest.mark.parametrize(
    "path", ["/nowhere", "/projects/", "/projects/p/functions", "/projects/a%2Fb"]
)
def test_unknown_path_is_404_or_an_id(path: str) -> None:
    expected = 405 if "%2F" in path else 404
    assert refused("PUT", path)[0] == expected
