"""Django's test databases in a branch.

Django creates and migrates them once, in the branch that all other branches are copies of. In a
copy, it only connects to them. Import this module after ``django.setup()``.
"""

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final, cast
from weakref import ReferenceType

import django
from django.apps import AppConfig, apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.models.signals import ModelSignal, post_migrate, pre_migrate
from django.test.utils import setup_databases

from neonctl_async import ConnectionUri
from pytest_neonctl_async.migrations import CachedMigrations

_SETTINGS: Final = (
    "AUTH_USER_MODEL",
    "DEFAULT_AUTO_FIELD",
    "DEFAULT_INDEX_TABLESPACE",
    "DEFAULT_TABLESPACE",
    "INSTALLED_APPS",
    "SITE_ID",
    "TIME_ZONE",
    "USE_TZ",
)
"""The settings that change what Django's own migrations write."""
_SERVER_OPTIONS: Final = frozenset(
    {
        *("assume_role", "channel_binding", "gssencmode", "hostaddr", "passfile", "service"),
        *("sslcert", "sslcertmode", "sslcrl", "sslcrldir", "sslkey", "sslmode", "sslnegotiation"),
        *("sslpassword", "sslrootcert", "target_session_attrs"),
    }
)
"""The connection options that apply to one server and its roles only."""


def django_files() -> list[Path]:
    """Return the files and folders that Django's ``migrate`` reads. Django must be set up.

    They are the folders with the migrations of all installed apps and, for an app without
    migrations, the files that define its models. The files that define receivers of
    ``pre_migrate`` and ``post_migrate`` are included too.
    """
    paths: set[Path] = set()
    for app in apps.get_app_configs():
        folders = _migration_folders(app)
        paths.update(folders or _files_of_models(app))
    for signal in (pre_migrate, post_migrate):
        paths.update(_source_files(map(inspect.unwrap, _receivers(signal))))
    return sorted(paths)


def django_migrations(
    *,
    uses_migrations: bool = True,
    unblock: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> CachedMigrations:
    """Return migrations that create and migrate the test databases of all aliases for Postgres.

    ``unblock`` allows Django to connect. Raise ImproperlyConfigured if no alias is for Postgres.
    """
    values = [django.get_version(), f"{uses_migrations}"]
    values += [repr(getattr(settings, name, None)) for name in _SETTINGS]
    values += [
        repr((one.alias, one.settings_dict["ENGINE"], sorted(_test(one).items())))
        for one in _postgres_connections()
    ]
    values += _test_names().values()
    caches = settings.CACHES.values()
    values += [
        str(cache.get("LOCATION")) for cache in caches if cache["BACKEND"].endswith("DatabaseCache")
    ]
    files = {*django_files(), *_source_files(map(type, router.routers))}
    if not uses_migrations:
        files.update(*map(_files_of_models, apps.get_app_configs()))
    return CachedMigrations(partial(_create, unblock, uses_migrations), sorted(files), values)


@contextmanager
def databases_in(
    connection_uri: ConnectionUri, *, uses_migrations: bool = True
) -> Generator[None, None, None]:
    """Make all aliases for Postgres connect to a branch, and restore their settings on exit.

    ``setup_databases()`` then uses the test databases of the branch as they are. It creates only
    missing databases. ``teardown_databases()`` does not delete them.
    """
    with _connected(connection_uri, uses_migrations=uses_migrations) as changed:
        for connection in changed:
            connection.creation.create_test_db = partial(_find_or_create, connection)
            connection.creation.destroy_test_db = partial(_disconnect, connection)
        try:
            yield
        finally:
            for connection in changed:
                del connection.creation.create_test_db
                del connection.creation.destroy_test_db


def _create(
    unblock: Callable[[], AbstractContextManager[object]],
    uses_migrations: bool,  # noqa: FBT001 - partial() passes it
    connection_uri: ConnectionUri,
) -> None:
    with unblock(), _connected(connection_uri, uses_migrations=uses_migrations) as changed:
        aliases = [connection.alias for connection in changed]
        try:
            setup_databases(0, interactive=False, aliases=aliases, serialized_aliases=())
        except Exception as error:
            if (migration := _failed_migration(error)) is not None:
                error.add_note(f"Django was applying the migration {migration}.")
            raise


def _failed_migration(error: Exception) -> Migration | None:
    """Return the migration that Django was applying. The error and its traceback do not name it."""
    for frame, _ in walk_tb(error.__traceback__):
        caller = frame.f_locals.get("self")
        if isinstance(caller, Migration):
            return caller
    return None


def _find_or_create(connection: BaseDatabaseWrapper, **options: object) -> str:
    """Connect to the test database of a branch, in place of ``create_test_db()``."""
    name: str = _test(connection)["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        is_missing = cursor.fetchone() is None
    if is_missing:
        return type(connection.creation).create_test_db(connection.creation, **options)
    _disconnect(connection)
    connection.settings_dict["NAME"] = name
    return name


def _disconnect(connection: BaseDatabaseWrapper, *_arguments: object, **_options: object) -> None:
    """Close all connections, in place of ``destroy_test_db()``."""
    connection.close()
    connection.close_pool()


@contextmanager
def _connected(
    connection_uri: ConnectionUri, *, uses_migrations: bool
) -> Generator[list[BaseDatabaseWrapper], None, None]:
    """Change the settings of all Postgres aliases in place, because other threads use them too."""
    names = _test_names()
    changed = _postgres_connections()
    aliases = {connection.alias for connection in changed}
    saved = [{**one.settings_dict, "TEST": {**_test(one)}} for one in changed]
    branch = connection_uri.django
    del branch["ENGINE"]  # the settings may have another one for Postgres
    try:
        for connection in changed:
            _disconnect(connection)
            options = _merged(connection_uri.options, connection.settings_dict["OPTIONS"])
            connection.settings_dict.update(branch, OPTIONS=options)
            test = _test(connection)
            if connection.alias in names:
                test["NAME"] = names[connection.alias]
            if "DEPENDENCIES" in test or DEFAULT_DB_ALIAS not in aliases:
                test["DEPENDENCIES"] = sorted(aliases.intersection(test.get("DEPENDENCIES", ())))
            if not uses_migrations:
                test["MIGRATE"] = False
        yield changed
    finally:
        for connection, values in zip(changed, saved, strict=True):
            _disconnect(connection)
            connection.settings_dict.clear()
            connection.settings_dict.update(values)


def _merged(branch: Mapping[str, str], own: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a branch, and the options of the project that apply to any server."""
    kept = {name: value for name, value in own.items() if name not in _SERVER_OPTIONS}
    merged = kept | dict(branch)
    words = f"{own.get('options', '')}".split()
    words = [word for word in words if not word.startswith("endpoint=")]
    if words:
        merged["options"] = " ".join([branch.get("options", ""), *words]).strip()
    return merged


def _postgres_connections() -> list[BaseDatabaseWrapper]:
    found = [connections[alias] for alias in connections]
    if not (postgres := [one for one in found if one.vendor == "postgresql"]):
        engines = ", ".join(f"{one.alias!r} has {one.settings_dict['ENGINE']!r}" for one in found)
        raise ImproperlyConfigured(
            f"no alias in DATABASES is for Postgres: {engines}. Set its ENGINE to "
            "'django.db.backends.postgresql' and its NAME to any name. Tests need no server there"
        )
    return postgres


def _test_names() -> dict[str, str]:
    """Return the name of each alias's test database. Different databases have different names."""
    names: dict[tuple[object, ...], str] = {}
    aliases: dict[str, str] = {}
    for connection in _postgres_connections():
        if not _test(connection)["MIRROR"]:
            signature = connection.creation.test_db_signature()
            name = f"{signature[-1]}"
            if signature not in names and name in names.values():
                name += f"_{connection.alias}"
            aliases[connection.alias] = names.setdefault(signature, name)
    return aliases


def _test(connection: BaseDatabaseWrapper) -> dict[str, Any]:
    """Return the settings of an alias's test database. Their values are of many types."""
    test: dict[str, Any] = connection.settings_dict["TEST"]
    return test


def _migration_folders(app: AppConfig) -> list[Path]:
    """Return the folders of an app's migrations, if any, without importing them."""
    module, _ = MigrationLoader.migrations_module(app.label)
    try:
        spec = None if module is None else find_spec(module)
    except ModuleNotFoundError:  # its parent package is missing
        spec = None
    if spec is None or spec.origin is None:  # Django ignores a package without __init__.py
        return []
    return [Path(folder) for folder in spec.submodule_search_locations or ()]


def _files_of_models(app: AppConfig) -> Iterator[Path]:
    for model in app.get_models(include_auto_created=True):
        fields = {type(field) for field in model._meta.get_fields()}  # noqa: SLF001 - documented
        for kind in (model, *fields):
            yield from _source_files(kind.__mro__)


def _receivers(signal: ModelSignal) -> Iterator[Callable[..., object]]:
    """Yield the receivers of a signal. Most of them are behind weak references."""
    for _, reference, *_ in signal.receivers:
        is_weak = isinstance(reference, ReferenceType)
        receiver = cast("Callable[..., object] | None", reference() if is_weak else reference)
        if receiver is not None:
            yield receiver


def _source_files(objects: Iterable[object]) -> Iterator[Path]:
    """Yield the files that define functions and classes, except built-in ones."""
    for one in objects:
        try:
            file = inspect.getsourcefile(one)  # type: ignore[arg-type]  # TypeError, as below
        except TypeError:  # built in, or a callable object
            continue
        if file is not None and (path := Path(file)).is_file():
            yield path
