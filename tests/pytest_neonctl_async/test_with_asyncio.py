"""With pytest-asyncio, ``neon_client`` runs on the event loop of each test, of any scope."""

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite

pytestmark = pytest.mark.process

ON_EVERY_LOOP = """
    import asyncio
    import pytest

    async def check(neon, created):
        found = await neon.branches.get(created.branch.project_id, created.branch.id)
        assert found.id == created.branch.id

    @pytest.mark.asyncio
    async def test_on_the_loop_of_the_function(neon_client, neon_branch):
        await check(neon_client, neon_branch)

    @pytest.mark.asyncio(loop_scope="module")
    async def test_on_the_loop_of_the_module(neon_client, neon_branch):
        await check(neon_client, neon_branch)

    @pytest.mark.asyncio(loop_scope="session")
    class TestOnTheLoopOfTheSession:
        async def test_factory(self, neon_client, neon_branch_factory, neon_project):
            first, second = await asyncio.gather(neon_branch_factory(), neon_branch_factory())
            assert first.branch.id != second.branch.id
            child = await neon_branch_factory(parent_id=first.branch.id, endpoints=[])
            assert (child.branch.parent_id, child.endpoints) == (first.branch.id, [])
            assert await neon_client.branches.count(neon_project.id) == 4

    def test_without_a_loop(neon_branch, neon_branch_factory):
        assert neon_branch.connection_uri.reveal().startswith("postgresql://")
        assert neon_branch.branch.current_state == "ready" or neon_branch.operations
        assert all(operation.status == "finished" for operation in neon_branch.operations)
        assert neon_branch_factory.create().branch.expires_at is not None
"""


@pytest.mark.long
@pytest.mark.parametrize("mode", ["strict", pytest.param("auto", marks=pytest.mark.scale)])
def test_client_runs_on_the_loop_of_every_scope(
    run_suite: RunSuite, pytester: pytest.Pytester, mode: str
) -> None:
    pytester.makepyfile(ON_EVERY_LOOP)
    run_suite(f"--asyncio-mode={mode}").assert_outcomes(passed=4)


@pytest.mark.scale
def test_older_name_of_the_loop_scope_is_understood(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.asyncio(scope="module")
        async def test_it(neon_client):
            await neon_client.projects.list().collect()
        """
    )
    run_suite("-W", "ignore::pytest.PytestDeprecationWarning").assert_outcomes(passed=1)


@pytest.mark.scale
def test_unrelated_suite_runs_with_older_pytest_and_pytest_asyncio(
    run_suite: RunSuite, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        older="""
        import sys
        import types
        import pytest

        del pytest.TerminalReporter  # new in pytest 8.4
        for name in ("pytest_asyncio", "pytest_asyncio.plugin"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules["pytest_asyncio"].fixture = pytest.fixture  # without a loop_scope
        """
    )
    pytester.makepyfile("def test_it(): ...")
    pytester.syspathinsert()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = (
        "-o",
        "asyncio_default_fixture_loop_scope=",
        "-W",
        "ignore::pytest.PytestConfigWarning",
    )
    run = run_suite("-p", "older", "-p", "asyncio", "-p", "neonctl-async", *options)
    run.assert_outcomes(passed=1)
