"""Tests that share a branch see what the others have written, and only they do."""

import asyncio

import pytest

from neonctl_async import NeonClient
from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.postgres import skip_without_postgres

pytestmark = pytest.mark.long

SHARED = """
    import psycopg
    import pytest
    from pytest_neonctl_async import branch_fixture

    neon_branch = branch_fixture("module")
    of_class = branch_fixture("class")
    own_branch = branch_fixture("function")

    @pytest.fixture(scope="module")
    def connection(neon_branch):
        with psycopg.connect(neon_branch.connection_uri.psycopg, autocommit=True) as connection:
            connection.execute("CREATE TABLE people AS SELECT 'Ada' AS name")
            yield connection

    def names(branch):
        with psycopg.connect(branch.connection_uri.psycopg) as connection:
            return [name for name, in connection.execute("SELECT name FROM people ORDER BY name")]

    def is_empty(branch):
        with psycopg.connect(branch.connection_uri.psycopg) as connection:
            return connection.execute("SELECT to_regclass('people')").fetchone() == (None,)

    def test_writes(connection, own_branch):
        connection.execute("INSERT INTO people VALUES ('Grace')")
        assert is_empty(own_branch)

    def test_sees_the_rows_over_the_same_connection(connection, neon_branch):
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (2,)
        assert names(neon_branch) == ["Ada", "Grace"]

    def test_child_starts_with_the_shared_rows(connection, neon_branch, neon_branch_factory):
        child = neon_branch_factory.create(parent_id=neon_branch.branch.id)
        with psycopg.connect(child.connection_uri.psycopg) as own:
            own.execute("DELETE FROM people")
        assert names(neon_branch) == ["Ada", "Grace"]

    class TestFirst:
        def test_creates_a_table(self, connection, of_class):
            with psycopg.connect(of_class.connection_uri.psycopg) as own:
                own.execute("CREATE TABLE people AS SELECT 'Alan' AS name")

        def test_finds_the_table(self, of_class, neon_branch):
            assert names(of_class) == ["Alan"]
            assert names(neon_branch) == ["Ada", "Grace"]

    class TestSecond:
        def test_has_another_branch(self, of_class):
            assert is_empty(of_class)

    @pytest.mark.asyncio
    async def test_shared_branch_is_in_the_project(neon_client, neon_project, neon_branch):
        branches = await neon_client.branches.list(neon_project.id).collect()
        assert neon_branch.branch.id in [branch.id for branch in branches]
        assert len(branches) == 2

    @pytest.mark.asyncio
    async def test_changes_a_password(neon_client, connection, neon_branch):
        ids = neon_branch.branch.project_id, neon_branch.branch.id
        await neon_client.roles.reset_password(*ids, "neondb_owner", wait=True)

    def test_still_has_the_rows(connection, neon_branch):
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (2,)
"""

OTHER_MODULE = """
    import psycopg
    import pytest
    from pytest_neonctl_async import branch_fixture

    session_branch = branch_fixture("session")

    @pytest.mark.parametrize("number", range(2))
    def test_other_modules_do_not_see_the_rows(number, neon_branch, session_branch):
        for branch in (neon_branch, session_branch):
            with psycopg.connect(branch.connection_uri.psycopg) as connection:
                row = connection.execute("SELECT to_regclass('people')").fetchone()
                assert row == (None,)

    @pytest.mark.asyncio
    async def test_shared_branch_of_the_module_is_deleted(neon_client, neon_project):
        assert await neon_client.branches.count(neon_project.id) == 2
"""

WITHOUT_DATABASES = """
    import pytest
    from pytest_neonctl_async import branch_fixture

    shared = branch_fixture("module")
    pytestmark = pytest.mark.asyncio
    ids = set()

    @pytest.mark.parametrize("number", range(3))
    async def test_it(number, neon_client, shared, neon_branch):
        ids.add(shared.branch.id)
        assert len(ids) == 1
        branch = await neon_client.branches.get(shared.branch.project_id, shared.branch.id)
        assert branch.name.startswith("neonctl-pytest-")
        assert neon_branch.branch.id not in ids
"""

TOO_LATE = """
    from pytest_neonctl_async import branch_fixture

    shared = branch_fixture("module")

    def test_it(request, neon_branch):
        request.getfixturevalue("shared")
"""

AFTER = """
    import pytest

    @pytest.mark.asyncio
    async def test_shared_branch_is_deleted(neon_client):
        projects = await neon_client.projects.list().collect()
        for project in projects:
            assert await neon_client.branches.count(project.id) == 1
"""


@pytest.mark.postgres
def test_branches_are_shared_and_separate(run_suite: RunSuite, pytester: pytest.Pytester) -> None:
    skip_without_postgres()
    pytester.makepyfile(test_1=SHARED, test_2=OTHER_MODULE)
    run_suite("-o", "neon_postgres=true").assert_outcomes(passed=9 + 3)


@pytest.mark.process
def test_branches_without_databases_are_shared(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_1=WITHOUT_DATABASES, test_2=AFTER)
    run_suite().assert_outcomes(passed=4)


@pytest.mark.process
def test_shared_branch_cannot_follow_the_branches_of_a_test(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(TOO_LATE)
    run = run_suite()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines("*RuntimeError: a shared branch must exist before the branches of*")


@pytest.mark.process
async def test_branches_are_shared_at_neon(
    run_suite: RunSuite, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    await asyncio.to_thread(pytester.makepyfile, test_1=WITHOUT_DATABASES, test_2=AFTER)
    run = await asyncio.to_thread(run_suite, "--neon-cloud")
    run.assert_outcomes(passed=4)
    assert await neon.branches.count(project_id) == 1
