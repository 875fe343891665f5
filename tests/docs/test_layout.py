"""The layout of the project: mirrored tests, small folders, short files, few exported names."""

import tomllib
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
    "neonctl_async/cli/commands/demo.py": (
        "tests/cli/test_command.py",
        "the examples of all commands run there, including the demo",
    ),
    "neonctl_async/cli/demonstration.py": (
        "tests/cli/test_command.py",
        "the examples of all commands run there, including the demo",
    ),
    "neonctl_async/cli/running.py": (
        "tests/cli/test_session.py",
        "commands run in sessions",
    ),
    "neonctl_async/cli/tracked.py": (
        "tests/cli/commands/test_operations.py",
        "commands wait for operations",
    ),
    "neonctl_async/cli/waits.py": (
        "tests/cli/commands/test_branches.py",
        "commands wait for what they start",
    ),
    "neonctl_async/clock.py": (
        "tests/testing/test_fake_clock.py",
        "the fake clock replaces it",
    ),
    "control_plane/neonctl_local/console/project_overview.py": (
        "control_plane/tests/console/pages/test_project.py",
        "the dashboard and the confirmation of a deletion show it",
    ),
    "control_plane/neonctl_local/api/billing/metrics.py": (
        "control_plane/tests/api/billing/test_consumption.py",
        "metrics are tested in the lists of consumption",
    ),
    "control_plane/neonctl_local/api/people/bodies.py": (
        "control_plane/tests/api/people/test_accounts.py",
        "bodies are tested at the endpoints that read them",
    ),
    "control_plane/neonctl_local/api/services/hosts.py": (
        "control_plane/tests/api/services/test_data_api.py",
        "responses contain the URLs of services",
    ),
    "control_plane/neonctl_local/engine/services/data_apis.py": (
        "control_plane/tests/api/services/test_data_api.py",
        "Data APIs are tested at the endpoints that create and move them",
    ),
    "control_plane/neonctl_local/engine/services/auth.py": (
        "control_plane/tests/api/services/test_auth.py",
        "copies of Neon Auth are tested at the endpoints that copy branches",
    ),
    "control_plane/neonctl_local/api/request/formats.py": (
        "control_plane/tests/api/test_snapshots.py",
        "formats are tested at the endpoints that check them",
    ),
    "control_plane/neonctl_local/arguments.py": (
        "control_plane/tests/test_main.py",
        "the arguments of the command",
    ),
    "control_plane/neonctl_local/commands/records.py": (
        "control_plane/tests/commands/test_people.py",
        "the commands decode responses to these records",
    ),
    "control_plane/neonctl_local/console/pages/branch_context.py": (
        "control_plane/tests/console/pages/test_branches.py",
        "what the pages show is tested on the pages",
    ),
    "control_plane/neonctl_local/console/operation_list.py": (
        "control_plane/tests/console/pages/test_operations.py",
        "the page shows the rows and the choices of its filters",
    ),
    "control_plane/neonctl_local/console/pages/people/memberships.py": (
        "control_plane/tests/console/pages/people/test_members.py",
        "roles are tested on the pages that depend on them",
    ),
    "control_plane/neonctl_local/console/pages/people/records.py": (
        "control_plane/tests/console/pages/people/test_members.py",
        "pages decode responses to these records",
    ),
    "control_plane/neonctl_local/console/routes.py": (
        "control_plane/tests/console/test_site.py",
        "the site serves the pages of the table",
    ),
    "control_plane/neonctl_local/console/static_files.py": (
        "control_plane/tests/console/test_site.py",
        "the site serves the files",
    ),
    "control_plane/neonctl_local/console/sql/session.py": (
        "control_plane/tests/console/sql/test_statements.py",
        "statements run in sessions",
    ),
    "control_plane/neonctl_local/engine/snapshots.py": (
        "control_plane/tests/api/test_snapshots.py",
        "the state of a snapshot is visible in its record",
    ),
    "control_plane/neonctl_local/errors.py": (
        "control_plane/tests/server/test_application.py",
        "the application converts errors to responses",
    ),
    "control_plane/neonctl_local/ids.py": (
        "control_plane/tests/api/test_projects.py",
        "ids are tested in records",
    ),
    "control_plane/neonctl_local/postgres/errors.py": (
        "control_plane/tests/postgres/test_binaries.py",
        "errors are tested where they are raised",
    ),
    "control_plane/neonctl_local/server/bodies.py": (
        "control_plane/tests/server/test_raw_sockets.py",
        "bodies that arrive in parts or not at all need raw sockets",
    ),
    "control_plane/neonctl_local/server/routes.py": (
        "control_plane/tests/server/test_application.py",
        "the application serves the routes",
    ),
    "control_plane/neonctl_local/server/tenant_state.py": (
        "control_plane/tests/server/test_tenant.py",
        "the data of a tenant",
    ),
    "control_plane/neonctl_local/serving.py": (
        "control_plane/tests/test_main.py",
        "what the command does",
    ),
    "control_plane/neonctl_local/settings.py": (
        "control_plane/tests/test_control_plane.py",
        "settings are tested through their effect",
    ),
    "control_plane/neonctl_local/api/services/bodies.py": (
        "control_plane/tests/api/services/test_credentials.py",
        "bodies are tested at the endpoints that read them",
    ),
    "control_plane/neonctl_local/storage/access_tables.py": (
        "control_plane/tests/api/services/test_credentials.py",
        "the records of the tables are visible in responses",
    ),
    "control_plane/neonctl_local/storage/plan.py": (
        "control_plane/tests/engine/test_lifecycle.py",
        "the life cycle of an operation follows its plan",
    ),
    "control_plane/neonctl_local/storage/readers.py": (
        "control_plane/tests/storage/test_database.py",
        "a database reads in these threads",
    ),
    "control_plane/neonctl_local/storage/service_tables.py": (
        "control_plane/tests/api/services/test_auth.py",
        "the records of the tables have no logic",
    ),
    "control_plane/neonctl_local/storage/tables.py": (
        "control_plane/tests/engine/test_operations.py",
        "the records of the tables have no logic",
    ),
    "control_plane/neonctl_local/storage/transactions.py": (
        "control_plane/tests/test_control_plane.py",
        "every request reads and writes rows in a transaction",
    ),
    "neonctl_async/models/services/functions.py": (
        "tests/resources/services/test_functions.py",
        "methods return the records",
    ),
    "neonctl_async/models/services/storage.py": (
        "tests/resources/services/test_storage.py",
        "methods return the records and pages",
    ),
    "neonctl_async/models/services/ai_gateway.py": (
        "tests/resources/services/test_ai_gateway.py",
        "records without logic, which the methods return",
    ),
    "neonctl_async/models/services/credentials.py": (
        "tests/resources/services/test_credentials.py",
        "records without logic, which the methods return",
    ),
    "neonctl_async/models/services/custom_domains.py": (
        "tests/resources/services/test_custom_domains.py",
        "records without logic, which the methods return",
    ),
    "neonctl_async/models/services/data_api.py": (
        "tests/resources/services/test_data_api.py",
        "records without logic, which the methods return",
    ),
    "neonctl_async/models/services/logs.py": (
        "tests/resources/services/test_logs.py",
        "the cursor of a page is tested with the list",
    ),
    "neonctl_async/models/services/triggers.py": (
        "tests/resources/services/test_triggers.py",
        "records without logic, which the methods return",
    ),
    "neonctl_async/provisioning/ensured.py": (
        "tests/provisioning/test_ensured_branches.py",
        "records without logic, which ensure returns",
    ),
    "neonctl_async/provisioning/fleet/client.py": (
        "tests/provisioning/fleet/test_fleet.py",
        "every test of a fleet passes a client",
    ),
    "neonctl_async/provisioning/fleet/plans.py": (
        "tests/provisioning/fleet/test_fleet.py",
        "Fleet.plan() returns the plan",
    ),
    "neonctl_async/provisioning/fleet/reports.py": (
        "tests/provisioning/fleet/test_fleet.py",
        "Fleet.apply() returns the report",
    ),
    "neonctl_async/provisioning/fleet/run.py": (
        "tests/provisioning/fleet/test_fleet.py",
        "Fleet.apply() is a run",
    ),
    "neonctl_async/transport/decoding.py": (
        "tests/transport/test_protocol_responses.py",
        "bodies are decoded in responses",
    ),
    "neonctl_async/transport/encoding/queries.py": (
        "tests/transport/test_protocol.py",
        "requests encode their query",
    ),
    "neonctl_async/transport/encoding/texts.py": (
        "tests/transport/test_protocol.py",
        "the checks are tested on ids and queries",
    ),
    "neonctl_async/transport/shared/messages.py": (
        "tests/transport/shared/test_redis_store.py",
        "messages have no logic; the stores exchange them",
    ),
    "neonctl_async/types.py": ("tests/docs/test_exported_names.py", "it only exports names"),
}
"""The test module of each module that has no test module of the same name, and the reason."""


def modules() -> list[Path]:
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in paths if path.name != "__init__.py")


def has_mirrored_tests(module: Path) -> bool:
    """Return whether ``cli/exits.py`` has ``tests/cli/test_exits.py``, or a folder ``exits/``."""
    inside = module.relative_to("neonctl_async") if module.parts[0] == "neonctl_async" else module
    file = ROOT / "tests" / inside.with_name(f"test_{module.stem.strip('_')}.py")
    return file.is_file() or any((ROOT / "tests" / inside.with_suffix("")).glob("test_*.py"))


def test_each_module_has_a_test_module_of_the_same_name_or_is_listed() -> None:
    without = {str(path) for path in modules() if not has_mirrored_tests(path)}
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


def test_contract_forbids_all_resources_to_the_readers_of_requests() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    name = "Requests to the local control plane are read below the resources"
    contracts = settings["tool"]["importlinter"]["contracts"]
    [contract] = [contract for contract in contracts if contract["name"] == name]
    children = (ROOT / "neonctl_async" / "local" / "api").iterdir()
    modules = {
        f"neonctl_local.api.{child.stem}"
        for child in children
        if child.suffix == ".py" or (child / "__init__.py").is_file()
    }
    allowed = {"neonctl_local.api.__init__", *contract["source_modules"]}
    assert set(contract["forbidden_modules"]) == modules - allowed


@pytest.mark.parametrize("folder", SOURCES)
def test_no_file_has_more_than_400_lines(folder: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}
