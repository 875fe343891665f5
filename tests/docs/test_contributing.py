"""No test is left out of CI, and CI runs what a contributor runs."""

import itertools
import re
import subprocess
import tomllib

import pytest

from tests.support.pages import ROOT

RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


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


def dry_run(target: str, *settings: str) -> str:
    """Return the commands of a target of make."""
    return subprocess.check_output(
        ["make", "--silent", "--dry-run", target, "MEASURE=", *settings], cwd=ROOT, text=True
    )


def test_workflow_runs_the_targets_of_the_local_run() -> None:
    local = re.findall(r"^\s*make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", *listed.split(", ")} == {*local}
