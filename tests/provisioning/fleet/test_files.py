"""Tenants are read from CSV and JSONL. Errors name the line, the field and the expected value."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from neonctl_async.provisioning.fleet import (
    FleetError,
    read_tenants,
    tenants_from_csv,
    tenants_from_jsonl,
)
from tests.provisioning.fleet.records import tenant

CSV = """project,branch,max_cu,compute,expires_at
acme , "b-1",0.5,,2027-01-01T00:00:00Z

acme,b-2,,false,
"""
JSONL = """{"project": "acme", "branch": "b-1", "max_cu": 0.5, "expires_at": "2027-01-01T00:00:00Z"}

{"project": "acme", "branch": "b-2", "compute": false, "max_cu": null}
"""
NO_COMPUTE = (
    "compute is False: expected True, or no compute_name, min_cu, max_cu, suspend_timeout_seconds"
)
TENANTS = [
    tenant("b-1", max_cu=0.5, expires_at=datetime(2027, 1, 1, tzinfo=UTC)),
    tenant("b-2", compute=False),
]


def csv_problems(text: str) -> tuple[str, ...]:
    with pytest.raises(FleetError) as caught:
        tenants_from_csv(text.splitlines(keepends=True))
    return caught.value.problems


def jsonl_problems(text: str) -> tuple[str, ...]:
    with pytest.raises(FleetError) as caught:
        tenants_from_jsonl(text.splitlines(keepends=True))
    return caught.value.problems


def test_lines_of_both_formats_become_tenants() -> None:
    assert tenants_from_csv(CSV.splitlines(keepends=True)) == TENANTS
    assert tenants_from_jsonl(JSONL.splitlines(keepends=True)) == TENANTS


@pytest.mark.parametrize(
    ("name", "text"), [("t.csv", CSV), ("t.JSONL", JSONL), ("t.ndjson", JSONL)]
)
def test_suffix_selects_the_format_of_a_file(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8-sig")  # as Excel writes CSV
    assert read_tenants(file) == TENANTS


def test_each_problem_of_a_csv_file_is_reported_with_its_line() -> None:
    problems = csv_problems(
        "project,branch,max_cu,compute\n"
        "acme,b-1,big,maybe\n"
        ",b-2,,\n"
        "acme,b-3,1,false\n"
        "acme,b-4,1,true,x,y\n"
        "acme,b-5\n"
        "acme,b-5\n"
    )
    assert problems == (
        "CSV, line 2: max_cu is 'big': expected a number from 0.25 to 1024",
        "CSV, line 2: compute is 'maybe': expected true or false",
        "CSV, line 3: project is missing: expected the id or the name of a project",
        f"CSV, line 4: {NO_COMPUTE}",
        "CSV, line 5: it has 6 cells: expected 4",
        "CSV, line 7: branch 'b-5' of project 'acme' is also in line 6: expected it once",
    )


def test_line_of_a_cell_with_a_line_break_is_its_last_line() -> None:
    [problem] = csv_problems('project,branch,max_cu\nacme,"b\n1",big\n')
    assert problem.startswith("CSV, line 3: max_cu is 'big'")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "",
            "CSV, line 1: the column project is missing: expected the id or the name of a project",
        ),
        (
            "project;branch",
            "CSV, line 1: the field 'project;branch' is unknown: expected project, ",
        ),
        ("project,branch,branch", "CSV, line 1: the field branch occurs twice: expected it once"),
    ],
)
def test_wrong_header_of_a_csv_file_is_reported_alone(header: str, message: str) -> None:
    assert csv_problems(f"{header}\nacme,big,wrong,many\n")[0].startswith(message)
    assert all("line 1" in problem for problem in csv_problems(f"{header}\n1,2,3,4,5\n"))


def test_unclosed_quote_is_reported() -> None:
    assert csv_problems('project,branch\nacme,"b-1\n') == (
        "CSV, line 2: it is not CSV: unexpected end of data",
    )


def test_each_problem_of_a_jsonl_file_is_reported_with_its_line() -> None:
    problems = jsonl_problems(
        "[1]\n"
        '{"project": "acme"}\n'
        '{"project": "acme", "branch": "b-1", "max_cu": "1"}\n'
        '{"project": "acme", "branch": "b-1", "size": 1}\n'
        "{\n"
    )
    assert problems[:3] == (
        "JSONL, line 1: it is '[1]': expected a JSON object",
        "JSONL, line 2: branch is missing: expected the name of a branch",
        "JSONL, line 3: max_cu is '1': expected a number from 0.25 to 1024",
    )
    assert problems[3].startswith("JSONL, line 4: the field 'size' is unknown: expected project,")
    assert problems[4] == "JSONL, line 5: it is '{': expected a JSON object"


def test_file_of_another_format_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"^the name of the file is 'tenants\.txt': expected a"):
        read_tenants(tmp_path / "tenants.txt")
    file = tmp_path / "tenants.csv"
    lines = "project,branch\n" + 5000 * "acme,Frueh\n"
    file.write_bytes(b"\xef\xbb\xbf" + lines.encode() + "acme,Früh".encode("latin-1"))
    with pytest.raises(FleetError, match=r"^tenants\.csv, line 5002: it is not UTF-8: save the f"):
        read_tenants(file)


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_tenants(tmp_path / "tenants.csv")
