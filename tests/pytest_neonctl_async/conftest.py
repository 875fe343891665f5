"""Suites that lie outside the package, run as their users run them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import pytest

from neonctl_async.local import LocalControlPlane

RunSuite: TypeAlias = Callable[..., pytest.RunResult]
RunOnPlatform: TypeAlias = Callable[..., Coroutine[None, None, pytest.RunResult]]


@pytest.fixture
def run_suite(pytester: pytest.Pytester) -> RunSuite:
    """Runs the test files that were made, with warnings as errors, in the order they stand."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    def run(*options: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly", *options)

    return run


@pytest.fixture
def run_on_platform(
    run_suite: RunSuite, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> RunOnPlatform:
    """Runs one test file with ``--neon-cloud``, where a plane of this process is the platform."""

    def run(plane: LocalControlPlane, source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(source)
        monkeypatch.setenv("NEON_API_HOST", plane.base_url)
        monkeypatch.setenv("NEON_API_KEY", plane.api_key)
        return run_suite("--neon-cloud", *options)

    async def in_thread(plane: LocalControlPlane, source: str, *options: str) -> pytest.RunResult:
        return await asyncio.to_thread(run, plane, source, *options)

    return in_thread
