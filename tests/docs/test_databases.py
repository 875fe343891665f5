"""The files on the page about databases for tests are a test suite that passes."""

import io
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from alembic import command
from alembic.config import Config

from neonctl_local.postgres.cache import kept_directories
from tests.support.pages import ROOT, TEXTS, code_blocks, commands, kinds
from tests.support.postgres import CACHE, copy_cache, skip_without_postgres

PAGE = "docs/test-databases.md"
OPTIONS = ("-o", "asyncio_default_fixture_loop_scope=function")
"""The setting without which some versions of pytest-asyncio warn."""
QUERY = """
    import psycopg

    def test_table_exists(neon_branch):
        with psycopg.connect(neon_branch.connection_uri.reveal()) as connection:
            assert connection.execute("SELECT count(*) FROM o").fetchone() == (0,)
"""
MODELS = """
    from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

    class Base(DeclarativeBase): ...

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = mapped_column(primary_key=True)
"""
QUERY_WITH_SESSION = """
    from models import Order
    from sqlalchemy import select

    def test_order_is_stored(session):
        session.add(Order(id=1))
        session.commit()
        assert session.scalars(select(Order.id)).all() == [1]
"""

QUERY_WITH_CONNECTION = """
    import pytest

    @pytest.mark.parametrize("id", [1, 2])
    def test_order_is_stored(postgresql, id):
        postgresql.execute("INSERT INTO orders VALUES (%s)", (id,))
        postgresql.commit()
        assert postgresql.execute("SELECT id FROM orders").fetchall() == [(id,)]
"""
DJANGO_CASE = """
from django.contrib.auth.models import User
from django.test import TestCase

class Users(TestCase):
    def test_user_is_stored(self):
        User.objects.create_user("ada")
"""


def files(page: str = PAGE) -> Mapping[str, str]:
    """Return the code of each block with a title, by its title: the name of a file."""
    found: dict[str, str] = {}
    for kind in kinds(TEXTS[page]):
        if not kind.startswith("diff") and (title := re.search(r'title="(.+)"', kind)):
            [(_, found[title[1]])] = code_blocks(TEXTS[page], kind)
    return found


@pytest.mark.postgres
def test_suite_of_the_page_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    shown = {name: code for name, code in files().items() if " " not in name}
    for name, code in shown.items():
        (pytester.path / name).write_text(code)
    tests = sum(code.count("def test_") for code in shown.values())
    result = pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly")
    result.assert_outcomes(passed=tests)


@pytest.mark.postgres
def test_suite_of_the_readme_prints_what_the_page_shows(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    monkeypatch.setenv("COLUMNS", "80")
    for name, code in files("README.md").items():
        (pytester.path / name).write_text(code)
    [shown] = [output for line, output in commands(TEXTS["README.md"]) if line == "pytest --quiet"]
    printed = pytester.runpytest_subprocess("--quiet", "--color=no", *OPTIONS).outlines
    assert [without_time(line) for line in printed] == [without_time(line) for line in shown]


def without_time(line: str) -> str:
    """Return a line of pytest without the duration of the run."""
    return re.sub(r" in \d.*", "", line)


@pytest.mark.postgres
@pytest.mark.scale
def test_alembic_migrates_the_parent_of_all_branches(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", copy_cache(pytester.path))
    config = Config("alembic.ini", stdout=io.StringIO())
    command.init(config, "migrations")
    command.revision(config, "orders")
    [revision] = (pytester.path / "migrations" / "versions").glob("*_orders.py")
    revision.write_text(revision.read_text().replace("pass", "op.execute('CREATE TABLE o ()')", 1))
    pytester.makeini(files()["pytest.ini"])
    pytester.makeconftest(files()["conftest.py with Alembic"])
    pytester.makepyfile(QUERY)
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    pytester.runpytest_subprocess(*OPTIONS, pytester.path).assert_outcomes(passed=1)


@pytest.mark.postgres
@pytest.mark.scale
def test_cached_migrations_create_the_tables(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", copy_cache(pytester.path))
    pytester.mkdir("migrations").joinpath("1.sql").write_text("CREATE TABLE o ()")
    pytester.makeini(files()["pytest.ini"])
    pytester.makeconftest(files()["conftest.py with cached migrations"])
    pytester.makepyfile(QUERY)
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)


@pytest.mark.postgres
@pytest.mark.scale
@pytest.mark.parametrize(
    ("conftest", "modules", "passed"),
    [
        pytest.param(
            "conftest.py with create_all",
            {"models": MODELS, "test_query": QUERY_WITH_SESSION},
            1,
            id="tables from models, without migrations",
        ),
        pytest.param(
            "conftest.py in place of pytest-postgresql",
            {"test_query": QUERY_WITH_CONNECTION},
            2,
            id="the tests of pytest-postgresql",
        ),
    ],
)
def test_suite_without_migrations_runs(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    conftest: str,
    modules: dict[str, str],
    passed: int,
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    pytester.makeini(files()["pytest.ini"])
    pytester.makeconftest(files()[conftest])
    pytester.makepyfile(**modules)
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=passed)


@pytest.mark.postgres
@pytest.mark.scale
def test_new_django_project_runs_with_pytest_and_with_its_runner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", copy_cache(pytester.path))
    django = (sys.executable, "-m", "django", "startproject", "shop", ".")
    assert pytester.run(*django).ret == 0
    with (pytester.path / "shop" / "settings.py").open("a") as settings:
        settings.write(files()["shop/settings.py with Postgres"])
        settings.write(files()["shop/settings.py with a runner"])
    pytester.makeini(files()["pytest.ini with Django"])
    test = files()["test_users.py with Django"]
    pytester.makepyfile(test_users=test)
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)
    (pytester.path / "tests.py").write_text(DJANGO_CASE)
    run = pytester.run(sys.executable, "manage.py", "test", "tests")
    run.stderr.fnmatch_lines(["Ran 1 test *", "OK"])


@pytest.mark.skipif(sys.platform == "darwin", reason="the step is for Linux")
def test_step_of_a_workflow_keeps_the_cache_of_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    step: Any
    [step] = msgspec.yaml.decode(files()["in a workflow of GitHub"])
    kept = Path(step["with"]["path"]).expanduser()
    assert next(kept_directories()).is_relative_to(kept)
    assert "hashFiles('migrations/**'" in step["with"]["key"]
    assert step["with"]["key"].startswith(step["with"]["restore-keys"])


def test_move_of_a_suite_shows_the_difference_of_two_files() -> None:
    suite = ROOT / "examples" / "sqlalchemy_suite"
    [(_, difference)] = code_blocks(TEXTS[PAGE], 'diff title="conftest.py"')
    for left_out, name in (("+", "conftest_before.py"), ("-", "conftest.py")):
        source = iter((suite / name).read_text().splitlines())
        shown = [line[1:] for line in difference.splitlines() if line[0] != left_out]
        assert all(line in source for line in shown), f"{name} lacks a line, or its order differs"
