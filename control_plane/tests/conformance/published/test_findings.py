"""Each kind of defect is a finding of the conformance run."""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from control_plane.tests.conformance.published.run import started_run
from neonctl_local.api.description import checks, published
from neonctl_local.api.request.calls import Call, Response
from neonctl_local.server import application, routes
from neonctl_local.server.routes import Route
from neonctl_local.storage.transactions import Transaction
from tests.contract.description import Description

pytestmark = pytest.mark.conformance

OPERATION = "PATCH /projects/{project_id}/endpoints/{endpoint_id}"


@pytest.fixture
def forget_checks() -> Iterator[None]:
    """Let the local control plane read its description again, before and after the test."""
    caches = (published.description, checks._checker, checks._types)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public way to clear them
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("forget_checks")
def test_validation_of_one_field_less_is_a_finding(
    description: Description, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = msgspec.json.decode(published.FILE.read_bytes())
    changes = document["schemas"]["EndpointUpdateRequest"]["properties"]["endpoint"]
    del changes["properties"]["pooler_mode"]
    monkeypatch.setattr(published, "_CONTENT", msgspec.json.encode(document))

    with started_run(description) as run:
        report = run.requests(OPERATION, ("coverage",))

    assert report.findings
    assert all("pooler_mode" in finding for finding in report.findings), report.text


def respond_with(status: int, content: bytes) -> Callable[[Transaction, Call], Response]:
    return lambda _tx, _call: Response(status, content)


@pytest.mark.parametrize(
    ("status", "content", "finding"),
    [
        (500, b'{"code":"","message":"broken"}', "ServerError: "),
        (203, b'{"regions":[]}', "status: 203 is neither published"),
        (200, b'{"regions":[{}]}', 'schema: regions.*: "region_id" is a required property'),
        (200, b'{"regions":[],"more":1}', 'schema: : "more" is not published'),
        (200, b"[", "schema: the body is not JSON"),
        (400, b'{"message":"without a code"}', 'schema: : "code" is a required property'),
    ],
)
def test_unpublished_response_is_a_finding(
    description: Description,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    content: bytes,
    finding: str,
) -> None:
    changed = Route("GET", "/regions", respond_with(status, content))
    kept = [route for route in routes.ROUTES if str(route) != str(changed)]
    monkeypatch.setattr(application, "ROUTES", (*kept, changed))

    with started_run(description) as run:
        report = run.requests("GET /regions", ("coverage",))

    assert finding in report.text
