"""pytest-django fixtures that use branches. They are registered if ``neon_django`` is true.

Everything else is up to pytest-django, such as which databases it sets up, serializes and mirrors.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Protocol

import pytest

from pytest_neonctl_async.scopes import branch_fixture

if TYPE_CHECKING:
    from neonctl_async.types import BranchCreated
    from pytest_neonctl_async.migrations import CachedMigrations

BRANCH: Final = "neon_django_branch"
"""The name of the fixture for the branch with Django's databases."""
BRANCH_KEY: "pytest.StashKey[BranchCreated]" = pytest.StashKey()
"""The stash key for the value of the ``neon_django_branch`` fixture."""


class _Blocker(Protocol):
    """The value of ``django_db_blocker``, which must allow Django to connect."""

    unblock: Callable[[], AbstractContextManager[object]]


@pytest.fixture(scope="session")
def django_db_modify_db_settings_tox_suffix() -> None:
    """Add no suffix, because each process has a branch of its own."""


@pytest.fixture(scope="session")
def django_db_modify_db_settings_xdist_suffix() -> None:
    """Add no suffix, because each worker has a branch of its own."""


@pytest.fixture(scope="session")
def neon_migrations(
    django_db_modify_db_settings: None,
    django_db_use_migrations: bool,
    django_db_blocker: _Blocker,
) -> "CachedMigrations":
    """Django's migrations, for all databases of the project. Later test runs use the result."""
    del django_db_modify_db_settings
    from django.core.exceptions import ImproperlyConfigured

    from pytest_neonctl_async.django_databases import django_migrations

    try:
        return django_migrations(
            uses_migrations=django_db_use_migrations, unblock=django_db_blocker.unblock
        )
    except ImproperlyConfigured as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)  # outside of except, so that only the text is shown


neon_django_branch: Final = branch_fixture("session")


@pytest.fixture(scope="session")
def _neon_django_databases(
    request: pytest.FixtureRequest,
    neon_django_branch: "BranchCreated",
    django_db_use_migrations: bool,
) -> Generator[None, None, None]:
    from pytest_neonctl_async.django_databases import databases_in

    request.config.stash[BRANCH_KEY] = neon_django_branch
    uri = neon_django_branch.connection_uri
    with databases_in(uri, uses_migrations=django_db_use_migrations):
        yield


@pytest.fixture(scope="session")
def django_db_setup(_neon_django_databases: None, django_db_setup: None) -> None:
    """The pytest-django setup, with the test databases in this worker's branch."""
    del _neon_django_databases, django_db_setup
