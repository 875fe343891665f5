"""The fixtures, on the local control plane."""

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.pages import TEXTS, code_blocks

ON_EVERY_LOOP = """
    import asyncio
    import pytest

    async def check(neon, created):
        found = await neon.branches.get(created.branch.project_id, created.branch.id)
        assert found == created.branch or found.id == created.branch.id

    @pytest.mark.asyncio
    async def test_on_a_loop_of_its_own(neon_client, neon_branch):
        await check(neon_client, neon_branch)

    @pytest.mark.asyncio(loop_scope="module")
    async def test_on_the_loop_of_the_module(neon_client, neon_branch):
        await check(neon_client, neon_branch)

    @pytest.mark.asyncio(loop_scope="session")
    class TestOnTheLoopOfTheSession:
        async def test_it(self, neon_client, neon_branch_factory, neon_project):
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

BY_ANYIO = """
    import pytest

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.mark.anyio
    async def test_by_the_runner_of_anyio(neon_client, neon_branch, neon_control_plane):
        project_id = neon_branch.branch.project_id
        assert await neon_client.branches.count(project_id) == 2
        assert len(await neon_control_plane.requests()) > 2

    def test_without_any_loop(neon_client): ...
"""

ASKED_FOR_BY_NAME = """
    import asyncio
    import pytest
    from neonctl_async.local import Fault

    def test_asks_as_it_goes(request):
        plane = request.getfixturevalue("neon_control_plane")
        request.getfixturevalue("neon_project")
        asyncio.run(plane.inject(Fault(route="GET /projects", status=404)))

    @pytest.mark.asyncio
    async def test_begins_with_nothing(neon_client):
        assert await neon_client.projects.list().collect() == []
"""

FAULTS_AND_CLEARING = """
    import pytest
    from neonctl_async import NotFoundError, OperationFailedError, RetryPolicy, ServerError
    from neonctl_async.local import Fault

    pytestmark = [pytest.mark.process, pytest.mark.asyncio]
    LIST = "GET /projects"

    async def test_plans_faults(neon_client, neon_control_plane, neon_project):
        await neon_control_plane.inject(Fault(route=LIST, status=503, times=1))
        await neon_client.projects.list().collect()
        [planned] = await neon_control_plane.faults()
        assert (planned.fault.route, planned.fired) == (LIST, 1)
        await neon_control_plane.clear_faults()
        assert list(await neon_control_plane.faults()) == []
        await neon_control_plane.fail_next("create_branch")
        with pytest.raises(OperationFailedError, match="as planned"):
            await neon_client.branches.create(neon_project.id, wait=True)
        with pytest.raises(ValueError, match="no action 'destroy'"):
            await neon_control_plane.fail_next("destroy")
        with pytest.raises(ValueError, match="GET /nothing"):
            await neon_control_plane.inject(Fault(route="GET /nothing", status=500))

    async def test_leaves_a_mess(neon_client, neon_control_plane, neon_branch):
        await neon_client.projects.create(name="left behind")
        await neon_control_plane.create_user("Somebody", "somebody@example.com")
        await neon_control_plane.inject(Fault(drop=True))
        await neon_control_plane.fail_next("create_branch")

    async def test_takes_away_what_the_fixtures_need(neon_client, neon_branch, neon_project):
        where = neon_project.id
        await neon_client.branches.create(where, parent_id=neon_branch.branch.id, wait=True)
        await neon_client.branches.update(where, neon_branch.branch.id, protected=True, wait=True)
        [key] = await neon_client.api_keys.list()
        await neon_client.api_keys.revoke(key.id)

    async def test_begins_with_nothing(neon_client, neon_control_plane):
        assert list(await neon_control_plane.requests()) == []
        assert await neon_client.projects.list().collect() == []
        assert [key.name for key in await neon_client.api_keys.list()] == ["first key"]

    async def test_gets_its_branch_all_the_same(neon_branch):
        assert [one.total_duration_ms for one in neon_branch.operations] == [30, 30]

    async def test_rules_users_and_organizations(neon_client, neon_control_plane):
        plane = neon_control_plane
        user_id = await plane.create_user("Somebody", "somebody@example.com")
        org_id = await plane.create_organization("Theirs", admin_id=user_id)
        await plane.add_member(org_id, plane.user_id)
        mine = {one.id for one in await neon_client.users.organizations()}
        assert mine == {plane.org_id, org_id}
        await plane.remove_member(org_id, plane.user_id)
        assert {one.id for one in await neon_client.users.organizations()} == {plane.org_id}
        assert await plane.create_api_key("theirs", user_id=user_id) != plane.api_key
        await plane.reset()
        assert plane.api_key not in repr(plane)
"""


def test_each_test_has_what_it_asks_for_and_leaves_nothing_to_the_next(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    first, shown = (
        next(code for _, code in code_blocks(TEXTS[page], "python") if "neon_branch" in code)
        for page in ("docs/quick-start.md", "docs/testing.md")
    )
    pytester.makepyfile(
        test_asked_for_by_name=ASKED_FOR_BY_NAME,
        test_faults=FAULTS_AND_CLEARING,
        test_loops=ON_EVERY_LOOP,
        test_preview=first,
        test_shown_on_the_page=shown,
    )
    run_suite("-o", "neon_operation_seconds=0.03").assert_outcomes(passed=2 + 6 + 4 + 1 + 2)


@pytest.mark.scale
def test_they_work_with_pytest_asyncio_in_auto_mode(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(ON_EVERY_LOOP)
    run_suite("--asyncio-mode=auto").assert_outcomes(passed=4)


@pytest.mark.scale
def test_they_work_with_the_runner_of_anyio(run_suite: RunSuite, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(BY_ANYIO)
    run = run_suite("-p", "no:asyncio", "-W", "ignore::pytest.PytestConfigWarning")
    run.assert_outcomes(passed=1, errors=1)
    run.stdout.fnmatch_lines("*neon_client needs an event loop: install pytest-asyncio*")


def test_a_duration_that_is_none_is_refused(run_suite: RunSuite) -> None:
    run = run_suite("-o", "neon_operation_seconds=soon")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines("*neon_operation_seconds is 'soon': expected seconds, 0 or more")


@pytest.mark.scale
def test_a_loop_is_found_by_the_older_name_of_its_scope(
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
def test_an_unrelated_suite_runs_on_older_pytest_and_pytest_asyncio(
    run_suite: RunSuite, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        older="""
        import sys
        import types
        import pytest

        del pytest.TerminalReporter  # pytest has it since 8.4
        for name in ("pytest_asyncio", "pytest_asyncio.plugin"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules["pytest_asyncio"].fixture = pytest.fixture  # one without a loop_scope
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


@pytest.mark.scale
def test_an_unrelated_suite_imports_no_more_than_the_hooks(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import sys

        def pytest_unconfigure(config):
            assert config.pluginmanager.hasplugin("neonctl-async")
            assert not {"neonctl_async", "msgspec"} & set(sys.modules)
        """
    )
    pytester.makepyfile("def test_it(): ...")
    run = run_suite("-n1")
    run.assert_outcomes(passed=1)
    assert "AssertionError" not in run.stdout.str() + run.stderr.str()
