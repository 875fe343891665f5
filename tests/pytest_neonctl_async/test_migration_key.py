"""The key of migrations changes with every byte that they read, and with nothing else."""

import os
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from neonctl_async import ConnectionUri
from pytest_neonctl_async import CachedMigrations, alembic_files
from pytest_neonctl_async.migrations import Migrate, migration_key


def migrate(_uri: ConnectionUri) -> None:
    """Stand for the function of a user."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "migrations" / "later").mkdir(parents=True)
    (project / "migrations" / "1.sql").write_text("CREATE TABLE a ()")
    (project / "migrations" / "later" / "2.sql").write_text("CREATE TABLE b ()")
    (project / "seed.json").write_text("{}")
    return project


def key(project: Path, function: Migrate = migrate) -> str:
    return migration_key(CachedMigrations(function, ["migrations", Path("seed.json")]), project)


def loaded(file: Path) -> Migrate:
    """Return the function ``migrate`` of a file."""
    names: dict[str, Migrate] = {}
    exec(compile(file.read_text(), file, "exec"), names)
    return names["migrate"]


def decorated(function: Migrate) -> Migrate:
    @wraps(function)
    def wrapper(uri: ConnectionUri) -> object:
        return function(uri)

    return wrapper


CHANGES: list[Callable[[Path], object]] = [
    lambda project: (project / "migrations" / "1.sql").write_text("CREATE TABLE A ()"),
    lambda project: (project / "migrations" / "later" / "2.sql").unlink(),
    lambda project: (project / "migrations" / "1.sql").rename(project / "migrations" / "3.sql"),
    lambda project: (project / "migrations" / "empty").touch(),
    lambda project: (project / "seed.json").write_text("{} "),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_file_changes_the_key(
    project: Path, change: Callable[[Path], object]
) -> None:
    before = key(project)
    change(project)
    assert key(project) != before


def test_compiled_modules_and_times_do_not_change_the_key(project: Path) -> None:
    before = key(project)
    (project / "migrations" / "__pycache__").mkdir()
    (project / "migrations" / "__pycache__" / "1.txt").touch()
    (project / "migrations" / "1.pyc").touch()
    os.utime(project / "seed.json", (1, 1))
    assert key(project) == before


def test_clone_of_a_project_has_the_same_key(project: Path) -> None:
    before = key(project)
    assert key(project.rename(project.with_name("clone"))) == before


def test_file_of_the_function_is_part_of_the_key(project: Path) -> None:
    file = project / "conftest.py"
    file.write_text("def migrate(uri): ...")
    first = key(project, loaded(file))
    assert key(project, partial(loaded(file))) == first
    assert key(project, decorated(loaded(file))) == first
    file.write_text("def migrate(uri): 1")
    assert key(project, loaded(file)) != first


def test_callable_object_and_builtin_function_have_a_key(project: Path) -> None:
    class Tool:
        def __call__(self, uri: ConnectionUri) -> None: ...

    assert len({key(project), key(project, Tool()), key(project, print)}) == 3


def test_linked_folder_is_part_of_the_key_and_a_loop_ends(project: Path) -> None:
    other = project.with_name("other")
    other.mkdir()
    (other / "3.sql").write_text("")
    (project / "migrations" / "other").symlink_to(other)
    (project / "migrations" / "loop").symlink_to(project / "migrations")
    before = key(project)
    (other / "3.sql").write_text("SELECT 1")
    assert key(project) != before


def test_missing_file_is_an_error_that_names_it(project: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'gone\.sql' of CachedMigrations does not exist"):
        migration_key(CachedMigrations(migrate, ["gone.sql"]), project)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="expected a list of files and folders"):
        CachedMigrations(migrate, "migrations")
    with pytest.raises(TypeError, match="migrate is None: expected a function"):
        CachedMigrations(None, [])  # type: ignore[arg-type]  # the mistake of a user


def test_values_are_part_of_the_key(tmp_path: Path) -> None:
    keys = {
        migration_key(CachedMigrations(migrate, [], values), tmp_path)
        for values in ([], ["a"], ["ab"], ["a", "b"])
    }
    assert len(keys) == 4


def test_files_of_alembic_contain_its_revisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "output").open("w") as output:
        config = Config("alembic.ini", stdout=output)
        command.init(config, "migrations")
        before = key_of_alembic(config, tmp_path)
        command.revision(config, "orders")
    assert key_of_alembic(config, tmp_path) != before
    assert Path("alembic.ini") in [Path(os.path.relpath(file)) for file in alembic_files(config)]


def key_of_alembic(config: Config, base: Path) -> str:
    return migration_key(CachedMigrations(migrate, alembic_files(config)), base)
