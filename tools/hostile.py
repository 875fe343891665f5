"""``python -m tools.hostile [NAME ...]``: run tests under conditions that cause or hide defects.

Each test with the marker ``process`` runs under every fourth condition, and a long one under every
eighth. Each condition runs a sample of the others. A NAME selects the conditions that contain it.
:data:`CONDITIONS` is the table of them all. A condition that this machine cannot create is skipped,
or fails if the variable CI is set.

A closed stream is closed for pytest and for the processes that inherit it. Most tests read the
output of the programs that they start; tests/cli/test_streams.py closes streams of single programs.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = 60
"""The number of other tests under each condition."""
SHORT, LONG = 4, 8
"""A test of processes runs under every fourth condition, and a long one under every eighth."""
CONCURRENCY = 2 * (os.cpu_count() or 1)
"""The number of conditions that run at the same time; half of the time, tests wait."""
LIMIT = 1800.0
"""Seconds after which the tests of a condition are killed."""
DROPPED = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
"""Variables of development machines that hide defects or slow the tests down."""
NOT_COPIED = shutil.ignore_patterns(
    *(".git", ".venv*", ".*_cache", ".hypothesis", ".bench*", ".browser", ".contract", ".fuzz"),
    *(".mcp", "__pycache__"),
)
"""What only this tree needs, and what the other conditions create and rename in it meanwhile."""
OPTIONS = (
    *("-m", "", "-p", "no:randomly", "-p", "no:xdist"),
    *("-p", "no:terminal", "-p", "no:faulthandler", "--capture=no"),
)
"""With the second line, pytest neither needs a standard stream nor opens one that is closed."""
PYTEST = "import sys, pytest; sys.path[0] = sys.argv.pop(1); sys.exit(pytest.main())"
NOT_RUN = (
    "tests/docs/test_contributing.py",
    "tests/docs/test_pages.py::test_examples_run",
    "tests/cli/test_streams.py",
    "tests/tools/",
)
"""Tests that start make, the tools or the examples of pages; and tests that set up the streams."""
APART = ("browser", "conformance", "contract", "engines", "mcp", "release", "site", "soak")
"""The markers of tests that need what another target of make installs or builds."""
OBEY = "setpriv --bounding-set=-dac_override,-dac_read_search,-fowner"
"""Makes root obey the permissions of files."""


class NotPossibleError(Exception):
    """A condition that cannot be created on this machine."""


@dataclass(frozen=True)
class Condition:
    """A condition, or two that do not affect the same code, and what creates them.

    ``shell`` runs before the tests, in the same process. ``env`` is added to the environment.
    ``flags`` are options of the interpreter that runs the tests. ``tree`` returns the source tree,
    which it may create in a temporary directory. ``interrupts`` adds slow tests that send SIGINT.
    Tests whose ids start with ``without`` do not run.
    """

    name: str
    shell: str = ":"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    flags: Sequence[str] = ()
    new_session: bool = False
    tree: Callable[[Path], Path] = lambda _directory: ROOT
    interrupts: bool = False
    without: tuple[str, ...] = ()


def oddly_named(directory: Path) -> Path:
    """Copy the source tree to a path with spaces and letters outside ASCII."""
    return shutil.copytree(ROOT, directory / "so ein Käse ☃", ignore=NOT_COPIED)


def read_only(directory: Path) -> Path:
    """Copy the source tree and remove the permission to write to it.

    Root may write anyway, and therefore gives up this capability by means of ``setpriv``. Raises
    :exc:`NotPossibleError` if that does not work.
    """
    tree = shutil.copytree(ROOT, directory / "tree", ignore=NOT_COPIED)
    compiled = ["neonctl_async", "pytest_neonctl_async", "control_plane/neonctl_local", "examples"]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *compiled], cwd=tree, check=True)
    for path in (*tree.rglob("*"), tree):
        path.chmod(path.stat().st_mode & ~0o222)
    touch = ["sh", "-c", f"{as_user()} touch probe"]
    if subprocess.run(touch, cwd=tree, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        raise NotPossibleError("this user may write everywhere, and setpriv does not help")
    return tree


def as_user() -> str:
    """Return the command that makes root obey permissions, or nothing for other users."""
    return OBEY if os.geteuid() == 0 and shutil.which("setpriv") else ""


CONDITIONS = [
    Condition(
        "unbuffered output, missing HOME",
        # Not even root can create a directory there.
        env={"PYTHONUNBUFFERED": "1", "HOME": "/dev/null/home"},
    ),
    # Kiritimati, 14 hours ahead of UTC. In this form, no time zone database is needed.
    Condition("SIGINT ignored, TZ=LINT-14", 'trap "" INT', {"TZ": "LINT-14"}, interrupts=True),
    Condition("standard input closed, LC_ALL=C", "exec <&-", {"LC_ALL": "C"}),
    Condition("standard output closed, umask 077", "exec >&-; umask 077"),
    Condition("standard error closed, no controlling terminal", "exec 2>&-", new_session=True),
    # -E keeps the asserts of the tests. A suite that runs in another process would lose its own.
    Condition(
        "PYTHONOPTIMIZE=2",
        env={"PYTHONOPTIMIZE": "2"},
        flags=["-E"],
        without=("tests/pytest_neonctl_async/",),
    ),
    # Its root cannot remove what the tests of accounts give to another user.
    Condition(
        "read-only source tree",
        f'set -- {as_user()} "$@"',
        tree=read_only,
        without=("control_plane/tests/postgres/test_account.py",),
    ),
    Condition("path with spaces and letters outside ASCII", tree=oddly_named),
]


ELSEWHERE = Condition(
    "elsewhere", env={"HOME": "/dev/null/home", "TZ": "LINT-14"}, tree=oddly_named
)
"""Where the tests are collected a second time. Ids that differ would be unknown there."""


class Selection:
    """A plugin of pytest that sorts the collected tests."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.processes: list[str] = []
        self.long: list[str] = []
        self.interrupts: list[str] = []
        self.others: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take in the tests."""
        self.ids = {item.nodeid for item in session.items}
        for item in session.items:
            marks = {mark.name for mark in item.iter_markers()}
            if item.nodeid.startswith(NOT_RUN):
                continue
            slow = marks & {"long", "scale", "soak"}
            if slow and "interruptible" in getattr(item, "fixturenames", ()):
                self.interrupts.append(item.nodeid)
            if not slow:
                (self.processes if "process" in marks else self.others).append(item.nodeid)
            elif slow == {"long"} and "process" in marks:
                self.long.append(item.nodeid)

    def of(self, condition: Condition) -> list[str]:
        """Return the ids of the tests to run under a condition."""
        start, step = CONDITIONS.index(condition), len(self.others) // SAMPLE
        interrupts = self.interrupts if condition.interrupts else []
        processes = self.processes[start % SHORT :: SHORT] + self.long[start % LONG :: LONG]
        ids = dict.fromkeys([*processes, *interrupts, *self.others[start::step]])
        return [id for id in ids if not id.startswith(condition.without)]


class Result(NamedTuple):
    """The outcome of a condition; ``failures`` has a line for each test that failed."""

    condition: Condition
    seconds: float
    tests: int
    failures: list[str]
    reason: str = ""
    """Set if the condition is not possible on this machine."""

    def __str__(self) -> str:
        outcome = "FAILED" if self.failures else self.reason or "passed"
        summary = f"{self.seconds:6.1f} s {self.tests:5} tests  {self.condition.name}: {outcome}"
        return "\n".join([summary, *self.failures])


def collect_elsewhere(*options: str) -> set[str]:
    """Return the ids of the tests that are collected in another environment."""
    with TemporaryDirectory() as name:
        tree, log = ELSEWHERE.tree(Path(name)), Path(name) / "log"
        with log.open("wb") as output:
            code = execute(ELSEWHERE, tree, output, PYTEST, str(tree), "-q", *options)
        lines = log.read_text().splitlines()
    if code != 0:
        sys.exit("\n".join(["the tests cannot be collected elsewhere:", *lines[-20:]]))
    return {line for line in lines if "::" in line}


def run(condition: Condition, tests: Sequence[str]) -> Result:
    """Run tests under a condition."""
    with TemporaryDirectory() as name:
        started = time.monotonic()
        directory = Path(name)
        try:
            tree = condition.tree(directory)
        except NotPossibleError as error:
            reason = f"not possible: {error}"
            required = f"    {reason}; CI is set, which requires all conditions"
            return Result(condition, 0, 0, [required] if os.environ.get("CI") else [], reason)
        report, log, chosen = (directory / name for name in ("report.xml", "log", "tests"))
        chosen.write_text("\n".join(tests))
        files = (f"--basetemp={directory / 'tmp'}", f"--junitxml={report}", f"@{chosen}")
        with log.open("wb") as output:
            code = execute(condition, tree, output, PYTEST, str(tree), *OPTIONS, *files)
        ran, failures = _read(report)
        if code != 0 and not failures:
            failures = [
                f"pytest ended with {code}",
                *log.read_text(errors="replace").splitlines()[-20:],
            ]
        return Result(condition, time.monotonic() - started, ran, failures)


def execute(
    condition: Condition, tree: Path, output: BinaryIO, program: str, *arguments: str
) -> int:
    """Run a Python program under a condition. Return its status, or -1 if it had to be killed."""
    shell = ("sh", "-c", f'{condition.shell}; exec "$@"', "sh")
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    if tree != ROOT:
        environment["PYTHONPATH"] = os.pathsep.join([str(tree), str(tree / "control_plane")])
    try:
        return subprocess.run(
            [*shell, sys.executable, *condition.flags, "-c", program, *arguments],
            cwd=tree,
            env=environment | dict(condition.env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=condition.new_session,
            timeout=LIMIT,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


def _read(report: Path) -> tuple[int, list[str]]:
    """Return the number of tests of a report, and a line for each that failed."""
    if not report.exists():
        return 0, []
    cases = list(ET.parse(report).iter("testcase"))
    return len(cases), [
        f"    {case.get('classname')}::{case.get('name')}: {problem.get('message', '')[:200]!r}"
        for case in cases
        for problem in (*case.iter("failure"), *case.iter("error"))
    ]


def main(names: Sequence[str]) -> int:
    """Run the tests under the conditions that are named, else all; return the exit status."""
    wanted = [one for one in CONDITIONS if not names or any(name in one.name for name in names)]
    selection = Selection()
    marks = " and ".join([*(f"not {marker}" for marker in APART), "(not postgres or process)"])
    collect = ("--collect-only", "-m", marks)
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        elsewhere = pool.submit(collect_elsewhere, *collect)
        if pytest.main([*collect, "-p", "no:terminal"], [selection]) != 0:
            sys.exit("the tests cannot be collected: run pytest --collect-only")
        if different := selection.ids ^ elsewhere.result():
            sys.exit("\n".join(["ids of tests depend on the environment:", *sorted(different)]))
        runs = [pool.submit(run, one, selection.of(one)) for one in wanted]
        for done in as_completed(runs):
            print(done.result(), flush=True)
    failed = sum(bool(done.result().failures) for done in runs)
    print(f"{failed} of {len(wanted)} conditions failed")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
