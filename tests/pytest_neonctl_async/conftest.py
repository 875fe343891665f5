"""Test suites outside the package, run as users run them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import pytest

from neonctl_async.local import LocalControlPlane

RunSuite: TypeAlias = Callable[..., pytest.RunResult]
RunInCloud: TypeAlias = Callable[..., Coroutine[None, None, pytest.RunResult]]


@pytest.fixture
def run_suite(pytester: pytest.Pytester) -> RunSuite:
    """Runs the test files of ``pytester``, with warnings as errors, in the order of definition."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    def run(*options: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly", *options)

    return run


@pytest.fixture
def run_in_cloud(
    run_suite: RunSuite, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> RunInCloud:
    """Runs a test file with ``--neon-cloud``; a local control plane takes the part of Neon."""

    def run(server: LocalControlPlane, source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(source)
        monkeypatch.setenv("NEON_API_HOST", server.base_url)
        monkeypatch.setenv("NEON_API_KEY", server.api_key)
        return run_suite("--neon-cloud", *options)

    async def run_in_thread(
        server: LocalControlPlane, source: str, *options: str
    ) -> pytest.RunResult:
        return await asyncio.to_thread(run, server, source, *options)

    return run_in_thread
