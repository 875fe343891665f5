"""The conditions of ``make hostile`` apply to the tests and to the processes that they start."""

import ast
import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import ROOT
from tools import hostile
from tools.hostile import (
    APART,
    CONDITIONS,
    NOT_RUN,
    Condition,
    NotPossibleError,
    collect_elsewhere,
    execute,
    run,
)

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="the conditions are created with a POSIX shell"),
]

HELPERS = """
import importlib, locale, os, signal, subprocess, sys, time

def fails(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        return True
    return False

def umask():
    before = os.umask(0)
    os.umask(before)
    return before

def package():
    return os.path.relpath(importlib.import_module("neonctl_async").__path__[0])

def write(path):
    with open(path, "w"):
        pass

def report(path, expression):
    value = eval(expression)
    with open(path, "a", encoding="ascii") as file:
        file.write(ascii(value) + "\\n")
"""
CHILD = f"{HELPERS}report(*sys.argv[1:])"
PROBE = f"{CHILD}; subprocess.run([sys.executable, '-c', {CHILD!r}, *sys.argv[1:]], check=True)"
"""Appends the value of an expression to a file, and lets a child process do the same."""

UNBUFFERED = "sys.stdout.write_through"
HOME = "os.path.expanduser('~')"
NO_TERMINAL = f"fails(write, '/dev/tty'), os.getsid(0) == os.getsid({os.getpid()})"
PROBES: dict[str, tuple[str, object]] = {
    "unbuffered output, missing HOME": (
        f"{UNBUFFERED}, os.path.exists({HOME}), fails(os.makedirs, {HOME})",
        (True, False, True),
    ),
    "SIGINT ignored, TZ=LINT-14": (
        "signal.getsignal(signal.SIGINT) is signal.SIG_IGN, time.localtime().tm_gmtoff",
        (True, 14 * 3600),
    ),
    "standard input closed, LC_ALL=C": (
        f"fails(os.fstat, 0), sys.stdin, locale.setlocale(locale.LC_CTYPE), {UNBUFFERED}",
        (True, None, "C", False),
    ),
    "standard output closed, umask 077": (
        "fails(os.fstat, 1), sys.stdout, umask()",
        (True, None, 0o077),
    ),
    "standard error closed, no controlling terminal": (
        f"fails(os.fstat, 2), sys.stderr, {NO_TERMINAL}",
        (True, None, True, False),
    ),
    "PYTHONOPTIMIZE=2": ("sys.flags.optimize", 2),
    "read-only source tree": (
        "fails(write, 'new'), fails(write, 'examples/module.py'), package()",
        (True, True, "neonctl_async"),
    ),
    "path with spaces and letters outside ASCII": (
        "os.path.basename(os.getcwd()), package()",
        ("so ein Käse ☃", "neonctl_async"),
    ),
}
"""For each condition, an expression and its value."""
KEPT = {"PYTHONOPTIMIZE=2": 0}
"""The values in the process of pytest where they differ from those in a child."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small source tree in place of that of the project, which takes long to copy.

    A file of compiled code disappears from it, as those do that Python renames.
    """
    source = tmp_path / "source"
    for name in ("neonctl_async", "pytest_neonctl_async", "examples"):
        (source / name).mkdir(parents=True)
        (source / name / "__init__.py").touch()
    (source / "examples" / "module.py").touch()
    (source / "examples" / "__pycache__").mkdir()
    (source / "examples" / "__pycache__" / "module.pyc.1").symlink_to("renamed")
    monkeypatch.setattr(hostile, "ROOT", source)
    return source


def test_each_condition_has_a_probe() -> None:
    assert PROBES.keys() == {condition.name for condition in CONDITIONS}


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("condition", [pytest.param(one, id=one.name) for one in CONDITIONS])
def test_condition_applies_to_the_process_and_its_children(
    condition: Condition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # the conditions must replace or remove it
    expression, expected = PROBES[condition.name]
    try:
        tree = condition.tree(tmp_path)
    except NotPossibleError as error:
        pytest.skip(f"the condition is not possible here: {error}")
    values, log = tmp_path / "values", tmp_path / "log"
    with log.open("wb") as output:
        code = execute(condition, tree, output, PROBE, str(values), expression)
    assert (code, log.read_text()) == (0, "")
    assert [ast.literal_eval(line) for line in values.read_text().splitlines()] == [
        KEPT.get(condition.name, expected),
        expected,
    ]


def impossible(_directory: Path) -> Path:
    raise NotPossibleError("the disk is made of cheese")


@pytest.mark.parametrize("ci", ["", "true"])
def test_impossible_condition_fails_in_ci_only(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    result = run(Condition("cheese", tree=impossible), [])
    assert "not possible: the disk is made of cheese" in str(result)
    assert bool(result.failures) == bool(ci)
    assert ("cheese: FAILED" in str(result)) == bool(ci)
    assert ("CI is set" in str(result)) == bool(ci)


def test_ids_that_depend_on_the_environment_are_found(source: Path) -> None:
    (source / "pytest_neonctl_async" / "plugin.py").touch()
    test = source / "test_source.py"
    test.write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('value', ['one', os.environ['HOME']])\n"
        "def test(value): ...\n"
    )
    here = {f"test_source.py::test[{value}]" for value in ("one", os.environ["HOME"])}
    elsewhere = collect_elsewhere("--collect-only", "-p", "no:cacheprovider", "test_source.py")
    assert elsewhere - here == {"test_source.py::test[/dev/null/home]"}


def test_tests_that_need_another_target_do_not_run_under_the_conditions() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    markers = settings["pytest"]["ini_options"]["markers"]
    by_target = re.compile(r"(\w+): .+, (?:run )?by make \w+")
    of_targets = {found[1] for marker in markers if (found := by_target.fullmatch(marker))}
    assert of_targets - {"scale"} == set(APART)  # make scale installs nothing of its own


def test_tests_of_the_tools_do_not_run_under_the_conditions() -> None:
    assert Path(__file__).relative_to(ROOT).as_posix().startswith(NOT_RUN)
