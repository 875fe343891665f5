"""Django's databases are in a branch: with pytest-django, and with Django's own test runner."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.postgres import copy_cache, skip_without_postgres

pytestmark = pytest.mark.long

SETTINGS = """
    SECRET_KEY = "secret"
    INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "shop", "plain"]
    ROOT_URLCONF = "urls"
    STATIC_URL = "static/"
    USE_TZ = True
    DATABASE_ROUTERS = ["routers.Router"]
    TEST_RUNNER = "pytest_neonctl_async.django.NeonRunner"
    POSTGRES = "django.db.backends.postgresql"
    DATABASES = {
        "default": {
            "ENGINE": POSTGRES,
            "NAME": "shop",
            "HOST": "one.invalid",
            "USER": "me",
            "OPTIONS": {
                "options": "-c statement_timeout=7s endpoint=other",
                "sslmode": "verify-full",
                "channel_binding": "require",
            },
        },
        "archive": {"ENGINE": POSTGRES, "NAME": "shop", "HOST": "two.invalid"},
        "replica": {"ENGINE": POSTGRES, "HOST": "three.invalid", "TEST": {"MIRROR": "default"}},
        "legacy": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    }
"""

ROUTERS = """
    class Router:
        def allow_migrate(self, db, app_label, **hints):
            return (db == "archive") == (app_label == "plain")
"""

URLS = """
    from django.http import HttpResponse
    from django.urls import path
    from shop.models import Order

    def count(request):
        return HttpResponse(Order.objects.count())

    async def acount(request):
        return HttpResponse(await Order.objects.acount())

    urlpatterns = [path("count", count), path("acount", acount)]
"""

MODELS = """
    from django.db import models

    class Order(models.Model):
        item = models.CharField(max_length=50)
"""

MIGRATION = """
    import pathlib
    from django.db import migrations, models

    def note(apps, editor):
        if editor.connection.alias == "default":
            with pathlib.Path("runs").open("a") as file:
                file.write("run\\n")
            apps.get_model("shop", "Order").objects.create(item="from the migration")

    class Migration(migrations.Migration):
        initial = True
        operations = [
            migrations.CreateModel(
                "Order",
                [
                    ("id", models.AutoField(primary_key=True)),
                    ("item", models.CharField(max_length=50)),
                ],
            ),
            migrations.RunPython(note),
        ]
"""

SUITE = """
    import os
    import pathlib
    import urllib.request

    import pytest
    from django.contrib.auth.models import Permission
    from django.db import connections
    from django.test import TestCase, TransactionTestCase
    from plain.models import Note
    from shop.models import Order

    ALL = ["default", "archive", "replica", "legacy"]

    @pytest.fixture(autouse=True, scope="session")
    def note_branch(django_db_setup):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        pathlib.Path(f"branch-{worker}").write_text(repr(connections["default"].settings_dict))

    def show(alias, setting):
        with connections[alias].cursor() as cursor:
            cursor.execute(f"SHOW {setting}")
            return cursor.fetchone()[0]

    @pytest.mark.parametrize("number", range(2))
    def test_changes_are_rolled_back(db, number):
        assert Order.objects.count() == 1
        Order.objects.create(item="pen")

    @pytest.mark.django_db(databases=ALL)
    def test_each_alias_has_its_database():
        names = [connections[alias].settings_dict["NAME"] for alias in ALL[:3]]
        assert names == ["test_shop", "test_shop_archive", "test_shop"]
        assert connections["legacy"].vendor == "sqlite"
        assert show("default", "statement_timeout") == "7s"
        Note.objects.using("archive").create(text="old")
        assert Permission.objects.filter(codename="add_order").exists()

    @pytest.mark.django_db(transaction=True, serialized_rollback=True)
    @pytest.mark.parametrize("number", range(2))
    def test_rows_of_migrations_are_restored(number):
        assert [order.item for order in Order.objects.all()] == ["from the migration"]
        Order.objects.create(item="pencil")

    @pytest.mark.django_db(transaction=True, databases=ALL)
    def test_mirror_is_the_same_database():
        order = Order.objects.create(item="book")
        assert Order.objects.using("replica").get(item="book") == order

    class TestRolledBack(TestCase):
        @classmethod
        def setUpTestData(cls):
            Order.objects.create(item="paper")

        def test_one(self):
            Order.objects.all().delete()

        def test_other(self):
            assert Order.objects.count() == 2

    class TestFlushed(TransactionTestCase):
        def test_one(self):
            Order.objects.create(item="paper")
            assert self.client.get("/count").content in (b"1", b"2")

        def test_other(self):
            assert not Order.objects.filter(item="paper").exists()

    def test_server_in_another_thread_uses_the_branch(live_server):
        Order.objects.create(item="glue")
        with urllib.request.urlopen(live_server.url + "/count") as response:
            assert int(response.read()) >= 1

    @pytest.mark.asyncio
    @pytest.mark.django_db(transaction=True)
    async def test_async_view_uses_the_branch(async_client):
        await Order.objects.acreate(item="ink")
        assert int((await async_client.get("/acount")).content) >= 1

    def test_own_branch_is_a_copy_of_the_migrated_database(neon_branch, db):
        options = neon_branch.connection_uri.options["options"]
        assert options not in connections["default"].settings_dict["OPTIONS"]["options"]
"""
TESTS = 13

MODELS_SUITE = """
import pytest
from plain.models import Note
from shop.models import Order

@pytest.mark.django_db(databases=["default", "archive"])
def test_tables_exist():
    Order.objects.create(item="pen")
    Note.objects.using("archive").create(text="old")
"""

FAILING = """
import pytest
from shop.models import Order

@pytest.mark.django_db(transaction=True)
def test_fails():
    Order.objects.create(item="pen")
    assert False
"""

FAILING_MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [migrations.RunSQL("SELECT * FROM nothing")]
"""

ON_SQLITE = """
from django.db import connection

def test_it(db):
    assert connection.vendor == "sqlite"
"""

RUNNER_SUITE = """
from django.db import connection
from django.test import TestCase, TransactionTestCase
from shop.models import Order

class TestRolledBack(TestCase):
    def test_row_of_the_migration(self):
        assert Order.objects.count() == 1
        assert connection.settings_dict["NAME"].startswith("test_shop")

class TestFlushed(TransactionTestCase):
    serialized_rollback = True

    def test_one(self):
        Order.objects.create(item="pen")
        assert Order.objects.count() == 2

    def test_other(self):
        Order.objects.create(item="pen")
        assert Order.objects.count() == 2

class TestOther(TestRolledBack):
    databases = ["default", "archive"]
"""

DJANGO = ("-p", "no:cacheprovider", "-o", "neon_postgres=true", "--ds=settings")
WITH_BRANCH = (*DJANGO, "-o", "neon_django=true")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a Django project, and a cache that only this test uses."""
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", copy_cache(pytester.path))
    pytester.makepyfile(settings=SETTINGS, routers=ROUTERS, urls=URLS, test_shop=SUITE)
    note = MODELS.replace("Order", "Note").replace("item", "text")
    pytester.makepyfile(
        **{
            "shop/__init__": "",
            "shop/models": MODELS,
            "shop/migrations/__init__": "",
            "shop/migrations/0001_initial": MIGRATION,
            "plain/__init__": "",
            "plain/models": note,
        }
    )
    return pytester.path


def runs(project: Path) -> int:
    return (project / "runs").read_text().count("run")


@pytest.mark.postgres
def test_each_worker_has_a_copy_of_the_migrated_databases(
    run_suite: RunSuite, project: Path
) -> None:
    run_suite(*WITH_BRANCH, "-n2").assert_outcomes(passed=TESTS)
    first, second = (file.read_text() for file in project.glob("branch-gw*"))
    assert first != second
    some = (*WITH_BRANCH, "-k", "changes or each_alias")
    run_suite(*some, "--reuse-db").assert_outcomes(passed=3, deselected=TESTS - 3)
    assert runs(project) == 1
    run_suite(*some, "--create-db").assert_outcomes(passed=3, deselected=TESTS - 3)
    assert runs(project) == 2


@pytest.mark.postgres
def test_changed_models_without_migrations_are_migrated_again(
    run_suite: RunSuite, project: Path
) -> None:
    (project / "test_shop.py").write_text(MODELS_SUITE)
    run_suite(*WITH_BRANCH, "--no-migrations").assert_outcomes(passed=1)
    for app in ("plain", "shop"):
        with (project / app / "models.py").open("a") as models:
            models.write("\n    price = models.IntegerField(default=1)\n")
    run_suite(*WITH_BRANCH, "--no-migrations").assert_outcomes(passed=1)


@pytest.mark.postgres
def test_test_database_of_a_failed_test_is_kept(
    run_suite: RunSuite, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "test_shop.py").write_text(FAILING)
    run = run_suite(*WITH_BRANCH, "--neon-keep-failed")
    run.assert_outcomes(failed=1)
    output = run.stdout.str()
    [pid] = map(int, re.findall(r"exist for an hour: kill (\d+) deletes them", output))
    try:
        [file] = re.findall(r"neon_django_branch: PGSERVICEFILE=(\S+) psql service=failed", output)
        monkeypatch.setenv("PGSERVICEFILE", file)
        with psycopg.connect(service="failed") as connection:
            assert connection.info.dbname == "test_shop"
            count = connection.execute("SELECT count(*) FROM shop_order").fetchone()
        assert count == (2,)
    finally:
        os.kill(pid, signal.SIGTERM)


@pytest.mark.postgres
def test_error_names_the_migration_that_failed(run_suite: RunSuite, project: Path) -> None:
    (project / "shop" / "migrations" / "0002_failing.py").write_text(FAILING_MIGRATION)
    run = run_suite(*WITH_BRANCH, "-k", "each_alias")
    run.assert_outcomes(errors=1, deselected=TESTS - 1)
    run.stdout.fnmatch_lines(
        [
            'django.db.utils.ProgrammingError: relation "nothing" does not exist',
            "Django was applying the migration shop.0002_failing.",
        ]
    )


@pytest.mark.process
def test_project_without_the_setting_keeps_its_databases(
    run_suite: RunSuite, project: Path
) -> None:
    (project / "routers.py").write_text("class Router: ...")
    (project / "test_shop.py").write_text(ON_SQLITE)
    settings = project / "settings.py"
    settings.write_text(f"{settings.read_text()}\nDATABASES = {{'default': DATABASES['legacy']}}")
    run_suite(*DJANGO).assert_outcomes(passed=1)
    run = run_suite(*WITH_BRANCH)
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines("no alias in DATABASES is for Postgres: 'default' has *sqlite3'. Set*")
    run.stdout.no_fnmatch_line("*with_django.py*")
    run = run_suite("-p", "no:django", "-o", "neon_django=true")
    run.stderr.fnmatch_lines("ERROR: neon_django needs pytest-django: pip install pytest-django")


@pytest.mark.postgres
def test_runner_of_django_migrates_once(project: Path) -> None:
    (project / "shop" / "tests.py").write_text(RUNNER_SUITE)
    command = (sys.executable, "-W", "error", "-m", "django", "test", "shop")
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(project)}
    for option, expected in (("--parallel=2", 1), ("--keepdb", 1), ("--neon-rebuild", 2)):
        run = subprocess.run(
            (*command, option),
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Ran 4 tests" in run.stderr
        assert run.stderr.endswith("OK\n")
        assert runs(project) == expected
