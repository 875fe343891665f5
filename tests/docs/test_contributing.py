"""The page for contributors, the Makefile and the workflows agree."""

import re
import subprocess

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


def test_workflow_runs_the_targets_of_the_local_run() -> None:
    local = re.findall(r"^\s*make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", *listed.split(", ")} == {*local}
