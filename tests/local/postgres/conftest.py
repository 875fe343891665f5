"""Postgres for tests: an installation, a template, and directories that the servers can enter."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from neonctl_async.local.postgres.account import ServerAccount, server_account
from neonctl_async.local.postgres.binaries import Installation, find_installations
from neonctl_async.local.postgres.copying import remove
from neonctl_async.local.postgres.errors import PostgresUnavailableError
from neonctl_async.local.postgres.template import Template, prepare_template


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that the account of the servers can enter, unlike pytest's ``tmp_path``."""
    directory = Path(tempfile.mkdtemp(prefix="neonctl-test-"))
    directory.chmod(0o711)
    yield directory
    remove(directory)


@pytest.fixture(scope="session")
def installation() -> Installation:
    """The newest Postgres of this machine. Without one, the test is skipped."""
    try:
        return next(iter(find_installations().values()))
    except PostgresUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def account() -> ServerAccount | None:
    """The account of the servers, if the tests run as root."""
    return server_account()


@pytest.fixture(scope="session")
def template(installation: Installation, account: ServerAccount | None) -> Template:
    """The template of the newest Postgres, from the cache of the user."""
    return prepare_template(installation, account)
