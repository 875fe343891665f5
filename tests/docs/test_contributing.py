"""CI runs what a contributor runs, and the page for contributors names what exists."""

import re
import tomllib

from neonctl_async import client
from tests.support.pages import ROOT, TEXTS, code_blocks

PAGE = TEXTS["docs/contributing.md"]
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
    local = re.findall(r"^\s*(?:TMPDIR=\S+ )?make ([a-z-]+)", RUN, re.MULTILINE)
    [listed] = re.findall(r"^ +target: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    assert {"test", "oldest", *listed.split(", ")} == {*local, "coverage"}


def test_workflow_runs_all_tests_on_each_version() -> None:
    """In place of ``make test`` and ``make oldest``."""
    assert re.search(r"^ +- run: make test-all$", WORKFLOW, re.MULTILINE)


def test_page_names_the_table_of_resources() -> None:
    [row] = re.findall(r"^\| `client.py` \| the class in .*$", PAGE, re.MULTILINE)
    assert re.findall(r"table `(\w+)`", row) == [
        name for name, value in vars(client).items() if value is client.RESOURCES
    ]


def test_diff_of_a_setting_fits_the_code() -> None:
    [(_, difference)] = code_blocks(PAGE, "diff")
    files = re.split(r"^--- a/(.+)\n.*\n", difference, flags=re.MULTILINE)[1:]
    assert 1 < len(files) / 2 <= 8
    for path, hunks in zip(files[::2], files[1::2], strict=True):
        text = (ROOT / path).read_text(encoding="utf-8")
        for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE)[1:]:
            before = [line[1:] for line in hunk.splitlines() if not line.startswith("+")]
            assert "\n".join(before) in text, f"update the diff in docs/contributing.md: {path}"
