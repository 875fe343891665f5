"""CI runs what a contributor runs."""

import re
import tomllib
from itertools import product

from tests.support.pages import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]
[ALL] = re.findall(r"^ALL = (.+)$", MAKEFILE, re.MULTILINE)


def test_what_test_all_leaves_out_has_a_target() -> None:
    markers = re.findall(r"not (\w+)", ALL)
    folders = {*PYTEST["ini_options"]["norecursedirs"]} - {".*", "__pycache__"}
    assert {*markers, *folders} <= {*re.findall(r" -m (\w+)", MAKEFILE)}


def test_each_test_is_run_either_by_make_test_or_after_it() -> None:
    by_default = PYTEST["ini_options"]["addopts"][-1]
    [left_out] = re.findall(r"^LEFT_OUT = (.+)$", MAKEFILE, re.MULTILINE)
    left_out = left_out.replace("$(ALL)", ALL)
    markers = {*re.findall(r"\w+", f"{by_default} {left_out}")} - {"and", "or", "not"}
    for values in product([False, True], repeat=len(markers)):
        marks = dict(zip(markers, values, strict=True))
        assert eval(by_default, marks) + eval(left_out, marks) == eval(ALL, marks), marks


def test_workflow_runs_the_targets_of_the_local_run() -> None:
    local = re.findall(r"^\s*make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", "test-all", *listed.split(", ")} == {*local}
