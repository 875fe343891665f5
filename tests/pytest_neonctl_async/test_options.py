"""The settings in pytest's configuration file, and their errors."""

from pathlib import Path

import pytest

from pytest_neonctl_async.options import operation_seconds, postgres_argument, postgres_option
from tests.pytest_neonctl_async.conftest import RunSuite


@pytest.mark.parametrize(("value", "argument"), [(False, None), (True, "")])
def test_switch_means_a_search_for_postgres_or_no_databases(
    value: bool, argument: str | None
) -> None:
    assert postgres_argument(value) == argument


def test_directory_of_postgres_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    assert postgres_argument("bin") == postgres_argument(Path("bin")) == str(tmp_path / "bin")


@pytest.mark.parametrize("directory", ["bin", Path("bin")])
def test_missing_directory_of_postgres_is_a_usage_error(directory: str | Path) -> None:
    expected = "neon_postgres is 'bin': expected true, false, or the directory of the programs"
    with pytest.raises(pytest.UsageError, match=expected):
        postgres_argument(directory)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("true", "Yes", "on", "1")),
        *((text, False) for text in ("false", "no", "OFF", "0", "")),
    ],
)
def test_words_switch_databases_on_and_off(
    pytester: pytest.Pytester, text: str, expected: bool
) -> None:
    config = pytester.parseconfig("-o", f"neon_postgres={text}")
    assert postgres_option(config) is expected


def test_databases_are_off_by_default(pytester: pytest.Pytester) -> None:
    assert postgres_option(pytester.parseconfig()) is False


def test_relative_directory_is_relative_to_the_configuration_file(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nneon_postgres = pg/bin")
    below = pytester.mkdir("tests")
    config = pytester.parseconfig(str(below))
    assert postgres_option(config) == pytester.path / "pg/bin"


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan", ""])
def test_invalid_operation_seconds_are_a_usage_error(pytester: pytest.Pytester, text: str) -> None:
    config = pytester.parseconfig("-o", f"neon_operation_seconds={text}")
    with pytest.raises(pytest.UsageError, match=f"^neon_operation_seconds is '{text}': expected"):
        operation_seconds(config)


@pytest.mark.process
def test_invalid_setting_ends_the_run_with_a_usage_error(run_suite: RunSuite) -> None:
    run = run_suite("-o", "neon_postgres=nowhere")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines("ERROR: neon_postgres is '*nowhere': expected true, false, or *")
