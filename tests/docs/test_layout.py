"""The layout of the project: mirrored tests, small folders, short files, few exported names."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import neonctl_async
from tests.support.pages import ROOT

PACKAGES = ("neonctl_async", "pytest_neonctl_async")
SOURCES = (*PACKAGES, "tests", "examples", "tools", "benchmarks")

COVERED: Mapping[str, tuple[str, str]] = {
    "neonctl_async/__main__.py": (
        "tests/release/test_installed.py",
        "without the extra, the command prints a hint; only an environment without it shows this",
    ),
    "neonctl_async/_version.py": ("tests/release/test_metadata.py", "the version of the archives"),
    "neonctl_async/cli/demo.py": (
        "tests/cli/test_command.py",
        "the examples of all commands run there, including the demo",
    ),
    "neonctl_async/cli/options.py": ("tests/cli/test_command.py", "options are tested in commands"),
    "neonctl_async/cli/output.py": ("tests/cli/test_operations.py", "commands print each format"),
    "neonctl_async/cli/tracked.py": (
        "tests/cli/test_operations.py",
        "commands wait for operations",
    ),
    "neonctl_async/cli/waits.py": (
        "tests/cli/test_branches.py",
        "commands wait for what they start",
    ),
    "neonctl_async/clock.py": (
        "tests/testing/test_fake_clock.py",
        "the fake clock replaces it",
    ),
    "neonctl_async/local/api/branch_changes.py": (
        "tests/local/api/test_branches.py",
        "one resource of the API, in two modules",
    ),
    "neonctl_async/local/api/connection_uris.py": (
        "tests/local/api/test_databases.py",
        "a connection URI names a database and a role",
    ),
    "neonctl_async/local/api/project_changes.py": (
        "tests/local/api/test_projects.py",
        "one resource of the API, in two modules",
    ),
    "neonctl_async/local/api/request/access.py": (
        "tests/local/api/test_api_keys.py",
        "access depends on the type of the key",
    ),
    "neonctl_async/local/api/request/bodies.py": (
        "tests/local/api/test_projects.py",
        "each field of a request is tested at its endpoint",
    ),
    "neonctl_async/local/api/request/calls.py": (
        "tests/local/server/test_application.py",
        "it holds the request that the application passes on",
    ),
    "neonctl_async/local/api/request/formats.py": (
        "tests/local/api/test_snapshots.py",
        "formats are tested at the endpoints that check them",
    ),
    "neonctl_async/local/api/request/paging.py": (
        "tests/local/api/test_projects.py",
        "pages are tested at the endpoints that list",
    ),
    "neonctl_async/local/api/roles.py": (
        "tests/local/api/test_databases.py",
        "roles own databases, and both start the same operations",
    ),
    "neonctl_async/local/api/users.py": (
        "tests/local/api/test_organizations.py",
        "a user lists organizations",
    ),
    "neonctl_async/local/engine/accounts.py": (
        "tests/local/api/test_api_keys.py",
        "accounts are visible through the keys that belong to them",
    ),
    "neonctl_async/local/engine/branch_objects.py": (
        "tests/local/api/test_databases.py",
        "it finds roles and databases for their endpoints",
    ),
    "neonctl_async/local/engine/branches.py": (
        "tests/local/api/test_branches.py",
        "the state of a branch is visible in its record",
    ),
    "neonctl_async/local/engine/computes.py": (
        "tests/local/api/test_endpoints.py",
        "the API calls computes endpoints",
    ),
    "neonctl_async/local/engine/snapshots.py": (
        "tests/local/api/test_snapshots.py",
        "the state of a snapshot is visible in its record",
    ),
    "neonctl_async/local/engine/timelines.py": (
        "tests/local/engine/test_background.py",
        "background work archives timelines",
    ),
    "neonctl_async/local/errors.py": (
        "tests/local/server/test_application.py",
        "the application converts errors to responses",
    ),
    "neonctl_async/local/ids.py": ("tests/local/api/test_projects.py", "ids are tested in records"),
    "neonctl_async/local/server/routes.py": (
        "tests/local/server/test_application.py",
        "the application serves the routes",
    ),
    "neonctl_async/local/server/tenant_state.py": (
        "tests/local/server/test_tenant.py",
        "the data of a tenant",
    ),
    "neonctl_async/local/settings.py": (
        "tests/local/server/test_control_plane.py",
        "settings are tested through their effect",
    ),
    "neonctl_async/local/storage/database.py": (
        "tests/local/server/test_control_plane.py",
        "a restart shows whether the data was stored",
    ),
    "neonctl_async/local/storage/plan.py": (
        "tests/local/engine/test_lifecycle.py",
        "the life cycle of an operation follows its plan",
    ),
    "neonctl_async/local/storage/tables.py": (
        "tests/local/engine/test_operations.py",
        "the records of the tables have no logic",
    ),
    "neonctl_async/models/branch_data.py": (
        "tests/resources/test_branch_data.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/models/consumption.py": (
        "tests/resources/test_consumption.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/models/organizations.py": (
        "tests/resources/test_organizations.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/models/project_access.py": (
        "tests/resources/test_project_access.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/models/regions.py": (
        "tests/resources/test_regions.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/models/snapshots.py": (
        "tests/resources/test_snapshots.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/models/users.py": (
        "tests/resources/test_users.py",
        "the methods of the resource return these records",
    ),
    "neonctl_async/provisioning/branches.py": (
        "tests/testing/plugin/test_backends.py",
        "the pytest plugin creates and deletes branches with it",
    ),
    "neonctl_async/provisioning/ephemeral.py": (
        "tests/provisioning/ephemeral/test_failures.py",
        "a folder of tests, because they need more than one file",
    ),
    "neonctl_async/testing/plugin/addresses.py": (
        "tests/testing/plugin/test_backends.py",
        "workers find the server by these addresses",
    ),
    "neonctl_async/testing/plugin/background_loop.py": (
        "tests/testing/plugin/test_backends.py",
        "backends run on the background loop",
    ),
    "neonctl_async/testing/plugin/branches.py": (
        "tests/testing/plugin/test_backends.py",
        "backends create the branches of tests",
    ),
    "neonctl_async/testing/plugin/commands.py": (
        "tests/testing/plugin/test_backends.py",
        "backends send the commands",
    ),
    "neonctl_async/testing/plugin/control_plane.py": (
        "tests/pytest_neonctl_async/test_fixtures.py",
        "the value of a fixture",
    ),
    "neonctl_async/testing/plugin/naming.py": (
        "tests/testing/plugin/test_sweep.py",
        "branches to sweep are found by their names",
    ),
    "neonctl_async/testing/plugin/server.py": (
        "tests/testing/plugin/test_backends.py",
        "the local backend starts the server",
    ),
    "neonctl_async/transport/dispatcher.py": ("tests/test_hooks.py", "it calls the hooks"),
    "neonctl_async/transport/proxies.py": (
        "tests/transport/test_trust.py",
        "the settings of proxies and certificates are tested together",
    ),
    "neonctl_async/types.py": ("tests/docs/test_exported_names.py", "it only exports names"),
    "neonctl_async/waiting/source.py": (
        "tests/waiting/test_poller.py",
        "it builds the requests of the poller",
    ),
    "neonctl_async/waiting/waiter.py": ("tests/waiting/test_wait.py", "the public wait methods"),
    "pytest_neonctl_async/plugin.py": (
        "tests/pytest_neonctl_async/test_fixtures.py",
        "the plugin consists of options and fixtures",
    ),
    "pytest_neonctl_async/with_asyncio.py": (
        "tests/pytest_neonctl_async/test_fixtures.py",
        "the fixtures for pytest-asyncio",
    ),
}
"""The test module of each module that has no test module of the same name, and the reason."""


def modules() -> list[Path]:
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in paths if path.name != "__init__.py")


def mirrored_test(module: Path) -> Path:
    """Return the path of the test module: ``tests/cli/test_exits.py`` for ``…/cli/exits.py``."""
    inside = module.relative_to("neonctl_async") if module.parts[0] == "neonctl_async" else module
    return Path("tests") / inside.with_name(f"test_{module.stem.strip('_')}.py")


def test_each_module_has_a_test_module_of_the_same_name_or_is_listed() -> None:
    without = {str(path) for path in modules() if not (ROOT / mirrored_test(path)).exists()}
    assert without - COVERED.keys() == set(), "write a test module, or add an entry to COVERED"
    assert COVERED.keys() - without == set(), "these have a test module, or do not exist"


@pytest.mark.parametrize("module", COVERED)
def test_listed_test_module_exists(module: str) -> None:
    test, reason = COVERED[module]
    assert (ROOT / test).is_file()
    assert Path(test).name.startswith("test_")
    assert reason


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_has_more_than_18_modules(package: str) -> None:
    for folder in [ROOT / package, *(ROOT / package).rglob("*/")]:
        names = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(names) <= 18, folder


def test_package_exports_at_most_50_names() -> None:
    assert len(neonctl_async.__all__) <= 50


@pytest.mark.parametrize("folder", SOURCES)
def test_no_file_has_more_than_400_lines(folder: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}
