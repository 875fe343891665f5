"""CI runs what a contributor runs."""

import re

from tests.support.pages import ROOT

RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def test_workflow_runs_the_targets_of_the_local_run() -> None:
    local = re.findall(r"^\s*make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", *listed.split(", ")} == {*local}
