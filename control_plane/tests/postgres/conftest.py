"""Postgres for tests: an installation, a template, and directories that the servers can enter."""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount, server_account
from neonctl_local.postgres.binaries import Installation, find_installations
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import PostgresUnavailableError
from neonctl_local.postgres.template import Template, prepare_template
from tests.support.clusters import DESIRED, files, open_descriptors, servers


@pytest.fixture(scope="session")
def installation() -> Installation:
    """The newest Postgres of this machine. Without one, the test is skipped."""
    try:
        return next(iter(find_installations().values()))
    except PostgresUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=[14, 15, 16, 17, 18])
def each_installation(request: pytest.FixtureRequest) -> Installation:
    """Every accepted version of Postgres. The test is skipped for those that are not installed."""
    try:
        return find_installations()[request.param]
    except (PostgresUnavailableError, KeyError):
        pytest.skip(f"Postgres {request.param} is not installed")


@pytest.fixture(scope="session")
def account() -> ServerAccount | None:
    """The account of the servers, if the tests run as root."""
    return server_account()


@pytest.fixture(scope="session")
def template(installation: Installation, account: ServerAccount | None) -> Template:
    """The template of the newest Postgres, from the cache of the user."""
    return prepare_template(installation, account)


@pytest.fixture
def temporary_directory(
    open_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The directory of all temporary files of the test."""
    tmp_path_factory.getbasetemp()  # otherwise, a later tmp_path would be here
    monkeypatch.setattr(tempfile, "tempdir", str(open_directory))
    return open_directory


@pytest.fixture
async def clusters(
    installation: Installation,
    template: Template,  # noqa: ARG001 - initdb takes too long for the time limit of a slow machine
    account: ServerAccount | None,
    temporary_directory: Path,
) -> AsyncIterator[Clusters]:
    """Clusters in a temporary directory. They leave no server, file or descriptor behind."""
    descriptors = await open_descriptors()
    clusters = Clusters({installation.major: installation}, account, directory=None, durable=False)
    await clusters.open()
    try:
        yield clusters
    finally:
        await clusters.close()
    assert await servers(temporary_directory) == []
    cache = f"neonctl-async-{os.geteuid()}"  # of templates, if the user has no home directory
    assert set(await files(temporary_directory)) <= {cache}
    # Fewer, if descriptors of an earlier test were closed meanwhile.
    assert await open_descriptors() <= descriptors


@pytest.fixture
def history() -> bool:
    """Whether ``each_clusters`` keep history."""
    return True


@pytest.fixture
async def each_clusters(
    each_installation: Installation,
    account: ServerAccount | None,
    temporary_directory: Path,  # noqa: ARG001 - the place of the data
    *,
    history: bool,
) -> AsyncIterator[Clusters]:
    """Clusters of each installed version: one, ``br-main``, which does not run."""
    major = each_installation.major
    installations = {major: each_installation}
    clusters = Clusters(installations, account, directory=None, durable=False, history=history)
    await clusters.open()
    try:
        await clusters.initialize("br-main", major)
        yield clusters
    finally:
        await clusters.close()


@pytest.fixture
async def main(clusters: Clusters, installation: Installation) -> str:
    """The id of a cluster whose server runs, with the role alice and the database app."""
    await clusters.initialize("br-main", installation.major)
    await clusters.start("br-main", DESIRED)
    return "br-main"
