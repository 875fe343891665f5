"""Test suites outside the package, run as users run them."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane

RunSuite: TypeAlias = Callable[..., pytest.RunResult]


@pytest.fixture
def run_suite(pytester: pytest.Pytester) -> RunSuite:
    """Runs the test files of ``pytester``, with warnings as errors, in the order of definition."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    def run(*options: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly", *options)

    return run


@pytest.fixture
async def project_id(
    control_plane: LocalControlPlane, neon: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The project that the tests run in. The local control plane takes the part of Neon."""
    project_id = (await neon.projects.create(name="tests", wait=True)).project.id
    monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
    monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
    monkeypatch.setenv("NEON_PROJECT_ID", project_id)
    return project_id
