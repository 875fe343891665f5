"""The layout of the project: mirrored tests, small folders, short files, few exported names."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import neonctl_async
from tests.support.pages import ROOT

PACKAGES = ("neonctl_async", "pytest_neonctl_async")
SOURCES = (*PACKAGES, "tests", "control_plane", "examples", "tools", "benchmarks")

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


@pytest.mark.parametrize("folder", SOURCES)
def test_no_file_has_more_than_400_lines(folder: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}
