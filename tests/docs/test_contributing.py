"""The page for contributors, the Makefile and the workflows agree."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import ROOT, TEXTS

RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


@pytest.mark.process
def test_page_lists_the_targets_of_make_help() -> None:
    printed = subprocess.check_output(["make", "--silent", "help"], cwd=ROOT, text=True)
    targets = [line.split(maxsplit=1) for line in printed.splitlines()]
    rows = re.findall(
        r"^\| `make ([a-z-]+)` \| (.*) \|$", TEXTS["docs/contributing.md"], re.MULTILINE
    )
    assert rows == [tuple(target) for target in targets]


@pytest.mark.process
def test_trial_change_breaks_one_test(tmp_path: Path) -> None:
    page = TEXTS["CONTRIBUTING.md"]
    [(old, new)] = re.findall(r"labels\.py`, change `(.+)` to `(.+)`\.", page)
    [text] = re.findall(r"are now printed\s+as `(.+)`", page)
    source = (ROOT / "neonctl_async" / "cli" / "labels.py").read_text(encoding="utf-8")
    assert source.count(old) == 1
    (tmp_path / "trial_change.py").write_text(
        "def pytest_sessionstart():\n"
        "    from neonctl_async.cli import labels\n"
        f"    exec({source.replace(old, new)!r}, vars(labels))\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "trial_change", "tests/cli/test_labels.py"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    assert re.findall(r"(\d+) failed", run.stdout) == ["1"]
    assert text in run.stdout


@pytest.mark.process
def test_run_of_the_tests_that_are_left_completes_the_measured_coverage() -> None:
    """``.ci/run`` sets MEASURE: each test runs in ``make test`` or in ``make coverage``."""
    everything, rest = (
        re.findall(r'-m "(.+)"', dry_run("coverage", *settings))[0]
        for settings in ((), ["MEASURE=1"])
    )
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    options = settings["pytest"]["ini_options"]
    default = options["addopts"][-1]
    markers = [marker.partition(":")[0] for marker in options["markers"]]
    selections = [compile(text, "markers", "eval") for text in (default, rest, everything)]
    for chosen in itertools.product([False, True], repeat=len(markers)):
        marked = dict(zip(markers, chosen, strict=True))
        in_test, in_rest, in_all = (eval(selection, {}, marked) for selection in selections)
        assert in_all == (in_test or in_rest), marked
        assert not (in_test and in_rest), marked


@pytest.mark.process
def test_coverage_is_measured_on_the_newest_python_only() -> None:
    commands = dry_run("test", "MEASURE=1", "VERSIONS=3.11 3.13")
    oldest, newest = re.findall(r"-m pytest (.+)", commands)
    assert "--cov" not in oldest
    assert "--cov" in newest
    assert "--cov" not in dry_run("test", "VERSIONS=3.11 3.13")


def dry_run(target: str, *settings: str) -> str:
    """Return the commands of a target of make."""
    return subprocess.check_output(
        ["make", "--silent", "--dry-run", target, "MEASURE=", *settings], cwd=ROOT, text=True
    )


def test_workflow_runs_the_targets_of_the_local_run() -> None:
    local = re.findall(r"^\s*make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", *listed.split(", ")} == {*local}


@pytest.mark.process
def test_workflow_compares_the_description_once_a_week() -> None:
    workflow = (ROOT / ".github" / "workflows" / "drift.yml").read_text(encoding="utf-8")
    [time] = re.findall(r'- cron: "(.+)"', workflow)
    assert re.fullmatch(r"\d+ \d+ \* \* \d", time)
    assert re.findall(r"run: (.+)", workflow) == ["make drift"]
    commands = dry_run("drift")
    for package in ("@neon/sdk", "@neondatabase/api-client"):
        assert f" {package}@latest" in commands, "the newest version, under its name"
    assert "--out .drift/types.json" in commands
    assert commands.rstrip().endswith("-m tests.contract.drift .drift")


def test_workflows_use_the_same_versions_of_actions() -> None:
    versions: dict[str, set[str]] = {}
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action, version in re.findall(r"uses: (\S+)@(.+)", file.read_text(encoding="utf-8")):
            versions.setdefault(action, set()).add(version)
    assert versions
    assert {action: found for action, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("package", "prefix"),
    [("neonctl_async", ""), ("control_plane/neonctl_local", "neonctl_local/")],
)
def test_layout_names_each_folder(package: str, prefix: str) -> None:
    page = TEXTS["docs/contributing.md"]
    layout = page[page.index("## Layout") : page.index("## How to add an endpoint")]
    folders = (
        f"{prefix}{path.name}/"
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").exists()
    )
    missing = [name for name in folders if f"| `{name}" not in layout]
    assert missing == []
