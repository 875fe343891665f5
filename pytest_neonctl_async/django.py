"""A test runner for Django's ``manage.py test``. It needs ``neonctl-async[testing]``."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.test.runner import DiscoverRunner

from neonctl_async import ConnectionUri
from pytest_neonctl_async.django_databases import databases_in, django_migrations
from pytest_neonctl_async.local import DatabaseBackend, open_local
from pytest_neonctl_async.migrations import Preparation, migration_key
from pytest_neonctl_async.once import Step
from pytest_neonctl_async.server_process import ServerProcess


class NeonRunner(DiscoverRunner):
    """Django's test runner, with test databases on a Postgres server that it starts and removes.

    Set ``TEST_RUNNER = "pytest_neonctl_async.django.NeonRunner"``. Migrations run only if one of
    their files has changed since an earlier run, or with ``--neon-rebuild``.
    """

    postgres: str = ""
    """The directory of the Postgres programs. By default, they are searched for."""

    def __init__(self, *, neon_rebuild: bool = False, **options: object) -> None:
        super().__init__(**options)
        self._rebuilds = neon_rebuild
        self._databases = ExitStack()

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        """Add the options of Django's runner, and ``--neon-rebuild``."""
        super().add_arguments(parser)
        parser.add_argument(
            "--neon-rebuild",
            action="store_true",
            help="Runs all migrations again, and replaces the result of earlier test runs.",
        )

    def setup_databases(self, **options: object) -> object:
        """Start Postgres, and make Django use the test databases there."""
        with ExitStack() as stack:
            uri = stack.enter_context(_running_branch(self.postgres, rebuilds=self._rebuilds))
            stack.enter_context(databases_in(uri))
            old_config = super().setup_databases(**options)
            self._databases = stack.pop_all()
        return old_config

    def teardown_databases(self, old_config: object, **options: object) -> None:
        """Close the connections, and remove the server with its data."""
        with self._databases:
            super().teardown_databases(old_config, **options)


@contextmanager
def _running_branch(postgres: str, *, rebuilds: bool) -> Generator[ConnectionUri, None, None]:
    migrations = django_migrations()
    preparation = Preparation(
        migrations.migrate,
        _perform,
        migration_key(migrations, Path.cwd()),
        rebuilds=rebuilds,
        is_alone=True,
    )
    process = ServerProcess()
    try:
        urls = process.urls(postgres)
        # Without a client, this process has no thread when --parallel forks it.
        with open_local(urls, os.urandom(4).hex(), preparation, postgres=True) as backend:
            assert isinstance(backend, DatabaseBackend), "open_local() was called for databases"
            backend.loop.call(_keep_running(backend))
        yield backend.created.connection_uri
    finally:
        process.close()


def _perform(step: Step) -> str:
    outcome = step()
    if outcome.note:
        sys.stderr.write(f"neon: {outcome.note}\n")
    return outcome.result


async def _keep_running(backend: DatabaseBackend) -> None:
    for endpoint in backend.created.endpoints:
        await backend.neon.endpoints.update(
            endpoint.project_id, endpoint.id, suspend_timeout_seconds=-1, wait=True
        )
