"""CI runs what a contributor runs."""

import re
import tomllib

from tests.support.pages import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def test_what_test_all_leaves_out_has_a_target() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    [selection] = re.findall(r"^ALL = (.+)$", MAKEFILE, re.MULTILINE)
    markers = re.findall(r"not (\w+)", selection)
    folders = {*settings["pytest"]["ini_options"]["norecursedirs"]} - {".*", "__pycache__"}
    assert {*markers, *folders} <= {*re.findall(r" -m (\w+)", MAKEFILE)}


def test_workflow_runs_the_targets_of_the_local_run() -> None:
    local = re.findall(r"^\s*make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", "oldest", *listed.split(", ")} == {*local, "coverage"}


def test_workflow_runs_all_tests_on_each_version() -> None:
    """In place of ``make test`` and ``make oldest``."""
    assert re.search(r"^ +- run: make test-all$", WORKFLOW, re.MULTILINE)
