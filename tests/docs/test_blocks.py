"""Every block that README and docs show is executed, or held against what it is taken from."""

import importlib.util
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.support.pages import ROOT, TEXTS, commands, kinds, words

HELD: Mapping[tuple[str, str], str] = {
    ("README.md", "python"): "tests/docs/test_pages.py",
    ("docs/request.md", "python"): "tests/contract/test_request_page.py",
    ("docs/command-line.md", "text"): "tests/cli/test_session.py",
    ("docs/errors.md", "text"): "tests/docs/test_pages.py",
    ("docs/from-neon-api.md", 'python title="neon-api"'): "tests/docs/test_from_neon_api.py",
    ("docs/from-neon-sdk.md", 'js title="@neon/sdk"'): "tests/contract/test_from_neon_sdk.py",
    ("docs/progress.md", "text"): "tests/test_progress.py",
}
"""What looks at the blocks of a kind on a page. Of the pages in docs, tests/docs/test_pages.py
runs all else that is ``python``; what consoles show is dealt with below."""

NOT_RUN = {
    "NEON_API_KEY=… NEON_PROJECT_ID=late-frost-12345678 pytest --neon-cloud": "the platform's",
    'curl -H "Authorization: Bearer $NEON_API_KEY" '
    "https://console.neon.tech/api/v2/projects/$PROJECT_ID/branches > branches.json": (
        "the platform's"
    ),
    ".venv-3.13/bin/mutmut show neonctl_async.waiting.schedule.x_delay__mutmut_7": (
        "takes the hours of make mutants before"
    ),
    "python preview.py": "the program that the page shows: tests/docs/test_pages.py runs it",
    "pytest test_preview.py": "the test that the page shows: tests/pytest_neonctl_async runs it",
    'git commit --all --message "Release 0.1.0"': "a release",
    ".ci/run": "runs this test",
    'git tag --annotate v0.1.0 --message "0.1.0"': "a release",
    "python3 -m venv .venv-upload": "a release",
    ".venv-upload/bin/pip install twine": "a release",
    ".venv-upload/bin/twine upload dist/neonctl_async-0.1.0.tar.gz "
    "dist/neonctl_async-0.1.0-py3-none-any.whl": "a release",
}
"""Commands that need what tests have not got, or that tests run in another way."""

BEFORE_A_PROGRAM = re.compile(r"^(timeout .* (?=python)|\.venv-[\d.]+/bin/)")
PYPROJECT: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: Any = PYPROJECT["project"]
EXTRAS: Mapping[str, Sequence[str]] = PROJECT["optional-dependencies"]
TESTED_WITH: Sequence[str] = PYPROJECT["dependency-groups"]["test"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


def is_target(*arguments: str) -> bool:
    """Whether ``make`` knows its targets and variables."""
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (.*)", makefile, re.MULTILINE)[0].split()
    return all(
        f"$({argument.partition('=')[0]}" in makefile if "=" in argument else argument in targets
        for argument in arguments
    )


def can_be_installed(_install: str, *requirements: str) -> bool:
    """Whether ``pip`` is told of this project, of its extras, or of what they and tests need."""
    ours = {PROJECT["name"], ".", *(f"{PROJECT['name']}[{extra}]" for extra in EXTRAS)}
    needed = {name_of(one) for several in (*EXTRAS.values(), TESTED_WITH) for one in several}
    return {*requirements} <= ours | needed


def is_tested(target: str, *arguments: str) -> bool:
    """Whether ``python`` runs a module, or an example that has tests and knows the options."""
    if target == "-m":
        return importlib.util.find_spec(arguments[0]) is not None
    example = ROOT / target
    source = example.read_text()
    test = ROOT / "tests" / "examples" / f"test_{example.stem}.py"
    options = [argument for argument in arguments if argument.startswith("--")]
    return test.exists() and all(f'"{option}"' in source for option in options)


def is_left_to_its_own_tests(*_arguments: str) -> bool:
    """Whether ``neonctl-async`` works as shown is looked at by tests/docs/test_command_line.py."""
    return True


CHECKS: Mapping[str, Callable[..., bool]] = {
    "make": is_target,
    "neonctl-async": is_left_to_its_own_tests,
    "pip": can_be_installed,
    "python": is_tested,
}


@pytest.mark.parametrize("page", TEXTS)
def test_every_block_is_of_a_kind_that_a_test_looks_at(page: str) -> None:
    everywhere = {"console", "python"} if page.startswith("docs/") else {"console"}
    here = {kind for name, kind in HELD if name == page}
    assert kinds(TEXTS[page]) - here <= everywhere
    assert here <= kinds(TEXTS[page]), "there is no such block any more"


def test_the_tests_that_look_at_blocks_read_the_page() -> None:
    for (page, _), test in HELD.items():
        assert page.rpartition("/")[2] in (ROOT / test).read_text(), test


@pytest.mark.parametrize("page", TEXTS)
@pytest.mark.process
def test_every_command_of_a_console_can_be_given(page: str) -> None:
    for command, output in commands(TEXTS[page]):
        program, *arguments = words(BEFORE_A_PROGRAM.sub("", command))
        if program == "head":
            said = subprocess.check_output([program, *arguments], cwd=ROOT, text=True)
            assert said.splitlines() == output
        elif command not in NOT_RUN:
            assert program in CHECKS, f"no test looks at {command}"
            assert CHECKS[program](*arguments), command
