"""The rehearsal of a release: its plan, its commands, its checks and its report.

No test installs a package or opens a connection to another machine.
"""

import hashlib
import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.pages import ROOT, TEXTS
from tools.rehearsal import __main__ as program
from tools.rehearsal import checks, probe
from tools.rehearsal.archives import differences, parsed_records, wheel_records
from tools.rehearsal.campaign import Result
from tools.rehearsal.checks import (
    Expected,
    exported,
    judged,
    judged_command,
    last_line,
    quick_start,
)
from tools.rehearsal.index import counted, serve
from tools.rehearsal.installers import Commands, cleaned, commands
from tools.rehearsal.plan import Installation, combinations, installations
from tools.rehearsal.report import is_success, line, summary

EXTRAS = {"cli": ["typer"], "redis": ["redis"]}
INDEX = "http://127.0.0.1:8081/simple/"
EXPECTED = Expected("1.2.0", {"neonctl_async/client.py": "hash"}, "program")
FOUND = {
    "version": "1.2.0",
    "from_index": True,
    "records": {"neonctl_async/client.py": "hash", "../../../bin/neonctl-async": "other"},
    "extras": ["cli"],
    "problems": [],
}


def test_base_each_extra_and_all_extras_are_installed() -> None:
    assert [*combinations(EXTRAS)] == [(), ("cli",), ("redis",), ("cli", "redis")]
    assert [*combinations(["cli"])] == [(), ("cli",)]


def test_each_installer_installs_each_combination_on_each_python() -> None:
    planned = installations(["3.11", "3.13"], EXTRAS)
    assert len({each.name for each in planned}) == len(planned) == 2 * (3 * 4 + 2)
    assert {each.installer for each in planned} == {"pip", "uv", "pipx"}
    assert [each.name for each in planned if each.from_sdist] == [
        "3.11 pip neonctl-async from the sdist",
        "3.11 uv neonctl-async from the sdist",
        "3.13 pip neonctl-async from the sdist",
        "3.13 uv neonctl-async from the sdist",
    ]


def test_installations_are_selected_by_a_part_of_their_name() -> None:
    [selected] = installations(["3.11", "3.13"], EXTRAS, "3.13 uv neonctl-async[cli,redis]")
    assert selected == Installation("uv", "3.13", ("cli", "redis"))


def test_selection_without_an_installation_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.rehearsal.campaign.interpreters", dict)
    with pytest.raises(SystemExit) as caught:
        program.main(["--only", "conda"])
    assert caught.value.code == 2
    assert "no installation contains 'conda'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("installer", "option"),
    [("pip", "--extra-index-url"), ("uv", "--index"), ("pipx", "--extra-index-url")],
)
def test_index_is_added_to_those_of_the_machine(
    installer: str, option: str, tmp_path: Path
) -> None:
    planned = commands(Installation(installer, "3.12", ("cli",)), "python3.12", INDEX, tmp_path)
    install = [*planned.commands[-1]]
    assert install[-1] == "neonctl-async[cli]"
    assert f"{option} {INDEX}" in " ".join(install).replace("=", " ")
    assert "--index-url" not in install
    assert "python3.12" in [word for command in planned.commands for word in command]
    assert planned.python.is_relative_to(tmp_path)
    assert planned.program == planned.python.with_name("neonctl-async")


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("from_sdist", [False, True])
def test_sdist_is_used_on_request_only(installer: str, from_sdist: bool, tmp_path: Path) -> None:
    installation = Installation(installer, "3.12", from_sdist=from_sdist)
    planned = commands(installation, "python3.12", INDEX, tmp_path)
    assert ("--no-binary" in planned.commands[-1]) == from_sdist


def test_variables_of_the_developer_do_not_reach_an_installation() -> None:
    dropped = {"PYTHONPATH": "/src", "VIRTUAL_ENV": "/env", "NEON_API_KEY": "key", "PIPX_HOME": "/"}
    kept = {"PATH": "/bin", "PIP_CERT": "/ca.pem", "NO_PROXY": "localhost"}
    environment = cleaned(dropped | kept)
    assert dropped.keys() & environment.keys() == set()
    assert environment["PIP_CERT"] == "/ca.pem"
    assert environment["NO_PROXY"] == "localhost,127.0.0.1"
    assert environment["UV_PYTHON_DOWNLOADS"] == "never"


def test_records_of_a_wheel_are_read_without_the_record_itself(tmp_path: Path) -> None:
    wheel = tmp_path / "one.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "one-1.dist-info/RECORD", "one.py,sha256=abc=,3\none-1.dist-info/RECORD,,\n"
        )
    assert wheel_records(wheel) == {"one.py": "abc"}
    assert parsed_records('"a,b.py",sha256=x,1\n') == {"a,b.py": "x"}


def test_changed_and_missing_files_are_differences() -> None:
    wheel = {"a.py": "1", "b.py": "2", "c.py": "3"}
    assert differences(wheel, {"a.py": "1", "b.py": "9", "more": "4"}) == ["b.py", "c.py"]
    assert differences(wheel, wheel | {"more": "4"}) == []


def test_program_of_the_quick_start_is_the_block_with_an_event_loop() -> None:
    source = quick_start(TEXTS["docs/quick-start.md"])
    compile(source, "preview.py", "exec")
    assert source.startswith("import asyncio")
    assert '"is ready at"' in source


@pytest.mark.parametrize("page", ["no block", "```python\nasyncio.run(one())\n```\n" * 2])
def test_quick_start_without_exactly_one_program_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="expected one"):
        quick_start(page)


def test_right_installation_has_no_problem() -> None:
    assert judged(Installation("pip", "3.12", ("cli",)), FOUND, EXPECTED) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": "1.1.0"}, "the version is 1.1.0: expected 1.2.0"),
        ({"from_index": False}, "the installation did not come from a package index"),
        ({"records": {}}, "1 files differ from those of the wheel: neonctl_async/client.py"),
        ({"extras": []}, "requirements of the extras ['cli'] are missing"),
        ({"problems": ["the import of the base imports rich"]}, "the import of the base imports"),
    ],
)
def test_wrong_installation_has_a_problem(changes: Mapping[str, object], problem: str) -> None:
    [found] = judged(Installation("pip", "3.12", ("cli",)), {**FOUND, **changes}, EXPECTED)
    assert found.startswith(problem)


NEXT_STEP = "neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n"


@pytest.mark.parametrize(
    ("extras", "status", "output", "errors", "right"),
    [
        (("cli",), 0, "1.2.0\n", "", True),
        (("cli",), 0, "1.1.0\n", "", False),
        (("cli",), 0, "1.2.0\n", "DeprecationWarning", False),
        (("cli",), 2, "", NEXT_STEP, False),
        ((), 2, "", NEXT_STEP, True),
        ((), 1, "", "ModuleNotFoundError: typer", False),
        (("redis",), 0, "1.2.0\n", "", False),
    ],
)
def test_command_prints_its_version_or_the_next_step(
    extras: tuple[str, ...], status: int, output: str, errors: str, right: bool
) -> None:
    assert (judged_command(status, output, errors, "1.2.0", extras) == []) == right


def test_variables_of_a_local_control_plane_are_read() -> None:
    lines = ["export NEON_API_HOST=http://127.0.0.1:1/api/v2\n", "export NEON_API_KEY='a b'\n"]
    assert exported(lines) == {"NEON_API_HOST": "http://127.0.0.1:1/api/v2", "NEON_API_KEY": "a b"}


@pytest.mark.process
def test_silent_local_control_plane_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "SECONDS", 0.2)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o700)
    silent = Commands([], os.environ, python)
    [problem] = checks.problems_of_quick_start(silent, EXPECTED, tmp_path)
    assert problem == "the local control plane did not start: no output"


def test_last_line_of_an_output_names_its_error() -> None:
    assert last_line("Traceback\nValueError: one\n\n") == "ValueError: one"
    assert last_line(" \n") == "no output"


GOOD = Result(Installation("pip", "3.9"), 12.34, [])
BAD = Result(Installation("uv", "3.11", ("cli",), from_sdist=True), 1.0, ["first", "second"])


def test_report_shows_seconds_and_problems() -> None:
    assert line(GOOD) == "  12.3 s  ok      3.9 pip neonctl-async"
    first, *problems = line(BAD).splitlines()
    assert first == "   1.0 s  failed  3.11 uv neonctl-async[cli] from the sdist"
    assert [problem.strip() for problem in problems] == ["first", "second"]


def test_summary_counts_installations_and_downloads() -> None:
    assert summary([BAD, GOOD], 61.2, {"one.whl": 2}) == (
        "2 installations on CPython 3.9, 3.11 in 61 s: 1 ok, 1 failed\n"
        "The index on loopback served: one.whl 2 times"
    )
    assert summary([GOOD], 1, {}).endswith("served: nothing")


def test_rehearsal_succeeds_if_all_work_and_the_index_served_both_archives() -> None:
    from_sdist = replace(BAD, problems=[])
    both = {"one.whl": 1, "one.tar.gz": 1}
    assert is_success([GOOD, from_sdist], both)
    assert not is_success([GOOD, BAD], both)
    assert not is_success([GOOD, from_sdist], {"one.whl": 1}), "the index served no sdist"
    assert not is_success([GOOD], {})
    assert not is_success([], both)


def test_successful_downloads_are_counted() -> None:
    log = (
        '127.0.0.1 - - [1/Jan] "GET /simple/neonctl-async/ HTTP/1.1" 200 1\n'
        '127.0.0.1 - - [1/Jan] "GET /packages/one.whl HTTP/1.1" 200 9\n'
        '127.0.0.1 - - [1/Jan] "GET /packages/one.whl HTTP/1.1" 200 9\n'
        '127.0.0.1 - - [1/Jan] "GET /packages/two.whl HTTP/1.1" 404 9\n'
    )
    assert counted(log) == {"one.whl": 2}


@pytest.mark.process
def test_index_serves_a_folder_and_counts_downloads(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    archive = tmp_path / "dist" / "neonctl_async-1.2.0-py3-none-any.whl"
    archive.write_bytes(b"content")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with serve(tmp_path / "dist", tmp_path / "log") as index:
        with opener.open(f"{index.url}neonctl-async/") as response:
            assert hashlib.sha256(b"content").hexdigest() in response.read().decode()
        with opener.open(index.url.replace("simple/", f"packages/{archive.name}")) as response:
            assert response.read() == b"content"
        with pytest.raises(urllib.request.HTTPError, match="404") as caught:
            opener.open(f"{index.url}aiohttp/")
        caught.value.close()
    assert index.downloads() == {archive.name: 1}


def fail(message: str) -> None:
    raise ImportError(message)


@pytest.mark.parametrize(
    ("message", "installed", "problem"),
    [
        ("pip install 'neonctl-async[redis]'", False, None),
        ("No module named redis", False, "names no command"),
        ("pip install 'neonctl-async[cli]'", False, "names no command"),
        ("broken", True, "is installed, but fails: ImportError: broken"),
        (None, True, None),
        (None, False, "is missing, but nothing reports it"),
    ],
)
def test_missing_extra_must_name_the_command(
    message: str | None, installed: bool, problem: str | None
) -> None:
    def use() -> None:
        if message is not None:
            fail(message)

    found = [*probe.check_use("redis", use, installed=installed)]
    assert len(found) == (problem is not None)
    assert all(problem is not None and problem in text for text in found)


def test_every_extra_has_a_check() -> None:
    assert probe.requirements().keys() == probe.USES.keys()
    assert probe.requirements()["console"] == {"jinja2", "neonctl-local"}


@pytest.mark.long
@pytest.mark.process
def test_probe_finds_the_version_and_the_extras_of_this_environment() -> None:
    """This environment has all extras of the tests, and an editable installation."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "rehearsal" / "probe.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert {"cli", "console", "otel", "redis", "testing"} <= {*found["extras"]}
    assert found["problems"] == []


@pytest.mark.long
@pytest.mark.process
def test_optional_package_that_the_base_imports_is_a_problem() -> None:
    code = (
        "from tools.rehearsal import probe\n"
        "import rich, sys\n"
        "print(*probe.check_imports({'rich', 'redis', 'jinja2'}), sep='|')"
    )
    output = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert output == "the import of the base imports rich\n"
