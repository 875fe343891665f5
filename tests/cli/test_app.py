"""The program as a whole: version, completion, and how it is entered."""

import shlex
from pathlib import Path

import pytest

from neonctl_async import __version__
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, PACKAGE, ended, started


def test_version_is_printed(cli: CommandLine) -> None:
    assert cli("--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize("arguments", [("frob",), ("projects", "frob"), ("projects", "list", "-x")])
def test_unknown_command_is_a_usage_error(cli: CommandLine, arguments: tuple[str, ...]) -> None:
    result = cli(*arguments)
    assert (result.stdout, result.exit_code) == ("", 2)


def test_api_key_has_no_option(cli: CommandLine) -> None:
    for command in ((), ("projects",), ("projects", "list"), ("api-keys", "create")):
        assert "--api-key" not in cli(*command, "--help").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.process
def test_common_shells_have_completion(cli: CommandLine, shell: str) -> None:
    script = cli(_NEONCTL_ASYNC_COMPLETE=f"source_{shell}").stdout
    assert "_NEONCTL_ASYNC_COMPLETE" in script
    words = "neonctl-async branches cr"
    completed = cli(
        _NEONCTL_ASYNC_COMPLETE=f"complete_{shell}",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        COMP_WORDS=words,
        COMP_CWORD="2",
        _TYPER_COMPLETE_ARGS=words,
    )
    assert "create" in completed.stdout
    assert "delete" not in completed.stdout


@pytest.mark.process
def test_completion_script_matches_the_current_shell() -> None:
    program = shlex.join(COMMAND)
    with started("bash", "-c", f"{program} --show-completion; exit $?") as process:
        output = ended(process)
    assert "complete -o default -F" in output.out
    assert (output.err, output.code) == ("", 0)


@pytest.mark.parametrize("group", [(), ("branches",)])
@pytest.mark.process
def test_help_needs_no_docstrings(cli: CommandLine, group: tuple[str, ...]) -> None:
    expected = cli(*group, "--help", COLUMNS="80", NO_COLOR="1").stdout
    environment = {"PYTHONOPTIMIZE": "2", "COLUMNS": "80", "NO_COLOR": "1"}
    with started(*COMMAND, *group, "--help", **environment) as process:
        output = ended(process)
    assert output == (expected, "", 0)


@pytest.mark.process
def test_missing_extra_is_named_with_its_install_command(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    with started(*COMMAND, PYTHONPATH=f"{tmp_path}:{PACKAGE}") as process:
        output = ended(process)
    assert output.err == "neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n"
    assert (output.out, output.code) == ("", 2)
