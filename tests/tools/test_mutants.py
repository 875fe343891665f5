"""The settings of mutmut, which ``make mutants`` uses."""

import re
import tomllib
from fnmatch import fnmatch
from typing import Any

import pytest

from tests.support.pages import ROOT

CONFIG: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
MODULES = [str(path.relative_to(ROOT)) for path in (ROOT / "neonctl_async").rglob("*.py")]
COPIED = {"tests", *CONFIG["also_copy"]}
"""The folders that mutmut copies beside the changed package."""


@pytest.mark.parametrize("pattern", CONFIG["only_mutate"])
def test_pattern_matches_a_module(pattern: str) -> None:
    assert any(fnmatch(module, pattern) for module in MODULES)


def test_patterns_match_a_package_and_the_packages_in_it() -> None:
    matched = [one for one in MODULES if any(fnmatch(one, p) for p in CONFIG["only_mutate"])]
    assert {"neonctl_async/waiting/scan.py", "neonctl_async/waiting/timing/pace.py"} <= {*matched}


@pytest.mark.parametrize("folder", [*CONFIG["pytest_add_cli_args_test_selection"], *COPIED])
def test_folder_exists(folder: str) -> None:
    assert (ROOT / folder).exists()


def test_packages_that_the_selected_tests_import_are_copied() -> None:
    selected = [ROOT / path for path in CONFIG["pytest_add_cli_args_test_selection"]]
    files = [ROOT / "tests/conftest.py", *(ROOT / "tests/support").rglob("*.py")]
    files += [file for path in selected for file in (path, *path.rglob("*.py")) if file.is_file()]
    ours = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"pytest_neonctl_async"}
    imported = {
        name
        for file in files
        for name in re.findall(r"(?m)^\s*(?:from|import) (\w+)", file.read_text())
    }
    assert imported & ours - {"neonctl_async"} <= COPIED
    assert "pytest_neonctl_async" in COPIED  # the entry point of a plugin, which pytest imports
