"""The local control plane accepts and rejects requests, and responds, as Neon has published."""

import pytest

from control_plane.tests.conformance.published.known import DEVIATIONS
from control_plane.tests.conformance.published.run import Run
from neonctl_local.server.routes import ROUTES
from tests.contract.description import Description

pytestmark = pytest.mark.conformance

OF_NEON_API = {
    "POST /projects/{project_id}/branches/{branch_id}/roles/{role_name}/reveal_password",
    "POST /projects/{project_id}/branches/{branch_id}/set_as_primary",
}
"""Routes that only neon-api 0.3.0 requests."""

SERVED = [str(route) for route in ROUTES if str(route) not in OF_NEON_API]


@pytest.mark.parametrize("operation", SERVED)
def test_requests_get_published_responses(run: Run, operation: str) -> None:
    report = run.requests(operation, ("coverage", "fuzzing"), examples=20)
    assert report.statuses, f"schemathesis has sent no request of {operation}"
    if report.findings:
        pytest.fail(report.text, pytrace=False)
    needed = {
        deviation
        for deviation in DEVIATIONS
        if operation in deviation.operations and not deviation.random
    }
    assert needed - report.deviations == set(), "these deviations are not needed any more"


@pytest.mark.timeout(900)  # it takes a minute or two, and more on a busy machine
def test_sequences_of_requests_get_published_responses(run: Run) -> None:
    report = run.scenarios(SERVED, examples=80, steps=10)
    if report.findings:
        pytest.fail(report.text, pytrace=False)
    reached = {operation for operation, status in report.statuses if status < 300}
    assert len(reached) > len(SERVED) / 2, "most operations are part of a sequence"


def test_all_served_operations_are_published(description: Description) -> None:
    published = {str(endpoint) for endpoint in description.endpoints}
    assert set(SERVED) - published == set()
