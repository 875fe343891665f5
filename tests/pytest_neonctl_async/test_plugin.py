"""The fixtures and options of the plugin, with the local control plane."""

import os

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.pages import TEXTS, code_blocks

pytestmark = pytest.mark.process

BY_ANYIO = """
    import pytest

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.mark.anyio
    async def test_with_the_runner_of_anyio(neon_client, neon_branch, neon_control_plane):
        project_id = neon_branch.branch.project_id
        assert await neon_client.branches.count(project_id) == 2
        assert len(await neon_control_plane.requests()) > 2

    def test_without_any_loop(neon_client): ...
"""

REQUESTED_BY_NAME = """
    import asyncio
    import pytest
    from neonctl_local import Fault

    def test_requests_fixtures_by_name(request):
        control_plane = request.getfixturevalue("neon_control_plane")
        request.getfixturevalue("neon_project")
        asyncio.run(control_plane.inject(Fault(route="GET /projects", status=404)))

    @pytest.mark.asyncio
    async def test_starts_without_projects(neon_client):
        assert await neon_client.projects.list().collect() == []
"""

FAULTS_AND_RESETS = """
    import pytest
    from neonctl_async import NotFoundError, OperationFailedError, RetryPolicy, ServerError
    from neonctl_local import Fault

    pytestmark = pytest.mark.asyncio
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

    async def test_leaves_projects_and_faults(neon_client, neon_control_plane, neon_branch):
        await neon_client.projects.create(name="left behind")
        await neon_control_plane.create_user("Somebody", "somebody@example.com")
        await neon_control_plane.inject(Fault(drop=True))
        await neon_control_plane.fail_next("create_branch")

    async def test_revokes_the_key_of_the_fixtures(neon_client, neon_branch, neon_project):
        branches, branch_id = neon_client.branches, neon_branch.branch.id
        await branches.update(neon_project.id, branch_id, expires_at=None, wait=True)
        await branches.create(neon_project.id, parent_id=branch_id, wait=True)
        await branches.update(neon_project.id, branch_id, protected=True, wait=True)
        [key] = await neon_client.api_keys.list()
        await neon_client.api_keys.revoke(key.id)

    async def test_starts_without_projects(neon_client, neon_control_plane):
        assert list(await neon_control_plane.requests()) == []
        assert await neon_client.projects.list().collect() == []
        assert [key.name for key in await neon_client.api_keys.list()] == ["first key"]

    async def test_gets_a_branch_again(neon_branch):
        assert [operation.total_duration_ms for operation in neon_branch.operations] == [30, 30]

    async def test_manages_users_and_organizations(neon_client, neon_control_plane):
        server = neon_control_plane
        user_id = await server.create_user("Somebody", "somebody@example.com")
        org_id = await server.create_organization("Theirs", admin_id=user_id)
        await server.add_member(org_id, server.user_id)
        joined = {org.id for org in await neon_client.users.organizations()}
        assert joined == {server.org_id, org_id}
        await server.remove_member(org_id, server.user_id)
        [organization] = await neon_client.users.organizations()
        assert organization.id == server.org_id
        assert await server.create_api_key("theirs", user_id=user_id) != server.api_key
        await server.reset()
        assert server.api_key not in repr(server)
"""


@pytest.mark.long
def test_fixtures_are_new_for_each_test(run_suite: RunSuite, pytester: pytest.Pytester) -> None:
    preview, guide = (
        next(code for _, code in code_blocks(TEXTS[page], "python") if "neon_branch" in code)
        for page in ("docs/quick-start.md", "docs/testing.md")
    )
    [(_, settings)] = code_blocks(TEXTS["docs/quick-start.md"], 'ini title="pytest.ini"')
    pytester.makeini(settings)
    pytester.makepyfile(
        test_requested_by_name=REQUESTED_BY_NAME,
        test_faults=FAULTS_AND_RESETS,
        test_preview=preview,
        test_guide=guide,
    )
    run_suite("-o", "neon_operation_seconds=0.03").assert_outcomes(passed=2 + 6 + 1 + 2)


@pytest.mark.scale
def test_client_runs_with_the_plugin_of_anyio(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(BY_ANYIO)
    run = run_suite("-p", "no:asyncio", "-W", "ignore::pytest.PytestConfigWarning")
    run.assert_outcomes(passed=1, errors=1)
    run.stdout.fnmatch_lines("*neon_client needs an event loop: install pytest-asyncio*")


@pytest.mark.scale
def test_unrelated_suite_imports_no_http_client(
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


@pytest.mark.process
@pytest.mark.parametrize("is_used", [True, False])
def test_header_says_which_of_two_fixtures_is_used(
    run_suite: RunSuite,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_used: bool,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(pytester.path), prepend=os.pathsep)
    other = "import pytest\n@pytest.fixture\ndef neon_branch(): return 'of pytest-neon'"
    package = pytester.mkpydir("pytest_neon")
    (package / "plugin.py").write_text(other)
    metadata = pytester.mkdir("pytest_neon-3.0.1.dist-info")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-neon\nVersion: 3.0.1\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\nneon = pytest_neon.plugin\n")
    pytester.makepyfile("""
        def test_it(request):
            [fixture] = request._fixturemanager.getfixturedefs("neon_branch", request.node)[-1:]
            print("used:", fixture.func.__module__.partition(".")[0])
    """)
    options = () if is_used else ("-p", "no:neon")
    run = run_suite("-s", *options)
    run.assert_outcomes(passed=1)
    [used] = [line.split()[-1] for line in run.outlines if "used:" in line]
    header = [line for line in run.outlines if line.startswith("neon: the fixture neon_branch")]
    if not is_used:
        assert (used, header) == ("pytest_neonctl_async", [])
        return
    names = {"pytest_neonctl_async": "neonctl-async", "pytest_neon": "pytest-neon"}
    winner = names.pop(used)
    [other] = names.values()
    switch = f"-p no:{'neon' if winner == 'pytest-neon' else winner}"
    fixture = f"neon: the fixture neon_branch is that of {winner}"
    assert header == [f"{fixture}, and replaces the one of {other}: {switch} selects the other"]


@pytest.mark.long
@pytest.mark.process
def test_without_the_server_a_fixture_names_the_package_to_install(
    pytester: pytest.Pytester, run_suite: RunSuite
) -> None:
    pytester.makepyfile(
        conftest="import sys\nsys.modules['neonctl_local'] = None",
        test_one="def test_it(neon_control_plane): pass\ndef test_other(): pass",
    )
    result = run_suite()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*need the package neonctl-local: pip install 'neonctl-async?testing?'"]
    )
