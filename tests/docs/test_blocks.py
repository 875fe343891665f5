"""Every code block of README and docs is executed or compared with its source."""

import importlib.util
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.docs import test_pages
from tests.support.pages import ROOT, TEXTS, commands, kinds, words

COVERED_BY: Mapping[tuple[str, str], str] = {
    ("README.md", "python"): "tests/docs/test_pages.py",
    ("README.md", "text"): "tests/docs/test_pages.py",
    ("control_plane/README.md", "python"): "tests/docs/test_pages.py",
    ("docs/contributing.md", "diff"): "tests/docs/test_contributing.py",
    ("docs/requests.md", 'python title="Neon only"'): "tests/contract/test_pages.py",
    ("docs/services.md", 'python title="Neon only"'): "tests/contract/test_pages.py",
    ("docs/services.md", 'python title="Neon only: files"'): "tests/docs/test_storage.py",
    ("docs/command-line.md", "text"): "tests/cli/test_session.py",
    ("docs/command-line.md", 'console title="A rehearsal"'): (
        "tests/cli/rehearsal/test_rehearse.py"
    ),
    ("docs/recipes.md", 'python title="Airflow"'): "tests/docs/test_engines.py",
    ("docs/recipes.md", 'python title="Prefect"'): "tests/engines/test_recipes.py",
    ("docs/recipes.md", 'python title="Temporal"'): "tests/engines/test_recipes.py",
    ("docs/errors.md", "text"): "tests/docs/test_pages.py",
    ("docs/from-neon-api.md", 'python title="neon-api"'): "tests/docs/test_from_neon_api.py",
    ("docs/from-neon-sdk.md", 'js title="@neon/sdk"'): "tests/contract/test_from_neon_sdk.py",
    ("docs/local-databases.md", 'javascript title="app.mjs"'): (
        "control_plane/tests/conformance/serverless/test_driver.py"
    ),
    ("docs/local-control-plane.md", 'console title="neon"'): (
        "control_plane/tests/conformance/neon_cli/test_commands.py"
    ),
    ("docs/quick-start.md", 'ini title="pytest.ini"'): (
        "tests/pytest_neonctl_async/test_plugin.py"
    ),
    ("docs/local-databases.md", "yaml"): "tests/docs/test_compose.py",
    ("docs/recipes.md", 'console title="The life of a pull request"'): (
        "tests/examples/test_preview.py"
    ),
    ("docs/observability.md", "text"): "tests/test_progress.py",
    ("docs/recipes.md", 'console title="In another terminal"'): "tests/examples/test_tenants.py",
} | {
    (page, kind): "tests/docs/test_databases.py"
    for page in ("README.md", "docs/test-databases.md")
    for kind in kinds(TEXTS[page])
    if "title=" in kind
}
"""The tests that cover special blocks, by page and kind. tests/docs/test_pages.py runs all other
``python`` blocks of docs. This module checks the commands of all ``console`` blocks."""

NOT_RUN = {
    "NEON_API_KEY=… NEON_PROJECT_ID=late-frost-12345678 pytest --neon-cloud": "needs an account",
    "NEON_API_KEY=… NEON_PROJECT_LIMIT=1 make neon": "needs an account",
    'curl -H "Authorization: Bearer $NEON_API_KEY" '
    "https://console.neon.tech/api/v2/projects/$PROJECT_ID/branches > branches.json": (
        "needs an account"
    ),
    ".venv-3.13/bin/mutmut show neonctl_async.waiting.timing.schedule.x_growing_delay__mutmut_7": (
        "needs a finished run of make mutants, which takes hours"
    ),
    ". .venv-3.13/bin/activate": "the version depends on the machine",
    "git clone --filter=blob:none https://github.com/neondatabase/website ../website": (
        "needs a network"
    ),
    "sed -n 's|^path = \"\\(.*\\)\"|content/docs/\\1.md|p' control_plane/tests/facts/facts.toml | "
    "xargs git -C ../website log -p --since=2026-11-28 --": "needs the clone of the line before",
    "mypy": "make check runs it",
    "pip install pre-commit": "no test needs this tool",
    "pre-commit install": "would change the clone",
    "python preview.py": "tests/docs/test_pages.py runs the program of the page",
    "pytest": "tests/docs/test_databases.py runs the test of the page",
    "pytest --quiet": "tests/docs/test_databases.py compares the output",
    "pytest test_preview.py": "tests/pytest_neonctl_async runs the test of the page",
    "pytest --neon-keep-failed": "tests/pytest_neonctl_async/test_keep_failed.py runs such a suite",
    "export NODE_EXTRA_CA_CERTS=$PWD/control-plane.db.d/ca.pem": "test_commands.py sets it",
    "neon psql main": "test_commands.py of the conformance tests runs it",
    'git commit --all --message "Release 0.1.0"': "a release",
    ".ci/run": "runs these tests",
    'git tag --annotate v0.1.0 --message "0.1.0"': "a release",
    "git push origin v0.1.0": "a release",
}
"""Commands that this module does not check, each with the reason."""

PREFIX = re.compile(r"^(timeout .* (?=python)|\.venv-[\d.]+/bin/)")
PYPROJECT: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: Any = PYPROJECT["project"]
HOOKS: Any = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]
EXTRAS: Mapping[str, Sequence[str]] = HOOKS["custom"]["extras"]
TESTED_WITH: Sequence[str] = PYPROJECT["dependency-groups"]["test"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


def is_target(*arguments: str) -> bool:
    """Return whether the Makefile has the targets and variables."""
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (.*)", makefile, re.MULTILINE)[0].split()
    return all(
        f"$({argument.partition('=')[0]}" in makefile if "=" in argument else argument in targets
        for argument in arguments
    )


def can_be_installed(_install: str, *requirements: str) -> bool:
    """Return whether each package is this project with its extras, or a dependency."""
    dependencies = {
        name_of(requirement) for group in (*EXTRAS.values(), TESTED_WITH) for requirement in group
    }
    for requirement in requirements:
        if requirement == "./control_plane":
            continue
        name, *extras = re.findall(r"[\w.-]+", requirement)
        if not ({*extras} <= {*EXTRAS} if name in {PROJECT["name"], "."} else name in dependencies):
            return False
    return True


def is_tested(target: str, *arguments: str) -> bool:
    """Return whether the module exists, or the example has tests and accepts the options."""
    if target == "-m":
        return importlib.util.find_spec(arguments[0]) is not None
    example = ROOT / target
    source = example.read_text()
    options = [argument for argument in arguments if argument.startswith("--")]
    tests = (ROOT / "tests" / "examples" / f"test_{example.stem}.py", Path(test_pages.__file__))
    return all(f'"{option}"' in source for option in options) and any(
        example.stem in test.read_text() for test in tests if test.exists()
    )


def has_other_tests(*_arguments: str) -> bool:
    """Return True, because tests/docs/test_command_line.py runs ``neonctl-async``."""
    return True


def is_sent_by_other_tests(*_arguments: str) -> bool:
    """Return True, because tests/docs/test_local_control_plane.py sends the requests."""
    return True


def selects_tests(path: str, option: str = "-k", keyword: str = "") -> bool:
    """Return whether ``pytest`` finds the module, or the folder with tests of the page."""
    tests = ROOT / path
    names = " ".join(TEXTS) if tests.is_dir() else tests.read_text()
    return option == "-k" and keyword in names


CHECKS: Mapping[str, Callable[..., bool]] = {
    "curl": is_sent_by_other_tests,
    "make": is_target,
    "neonctl-async": has_other_tests,
    "pip": can_be_installed,
    "pytest": selects_tests,
    "python": is_tested,
}


@pytest.mark.parametrize("page", TEXTS)
def test_each_kind_of_block_is_covered_by_a_test(page: str) -> None:
    known = {"console", "python"} if page.startswith("docs/") else {"console"}
    special = {kind for name, kind in COVERED_BY if name == page}
    assert kinds(TEXTS[page]) - special <= known
    assert special <= kinds(TEXTS[page]), "COVERED_BY lists a kind that the page lacks"


def test_tests_of_special_blocks_read_the_page() -> None:
    for (page, _), test in COVERED_BY.items():
        assert page.rpartition("/")[2] in (ROOT / test).read_text(), test


@pytest.mark.parametrize("page", TEXTS)
@pytest.mark.process
def test_every_command_of_a_console_works(page: str) -> None:
    for command, output in commands(TEXTS[page]):
        program, *arguments = words(PREFIX.sub("", command))
        if program == "head":
            printed = subprocess.check_output([program, *arguments], cwd=ROOT, text=True)
            assert printed.splitlines() == output
        elif command not in NOT_RUN:
            assert program in CHECKS, f"no test covers {command}"
            assert CHECKS[program](*arguments), command
