"""The program as a whole: version, completion, and how it is entered."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from neonctl_async import __version__
from neonctl_async.cli.app import ENTRIES
from neonctl_async.cli.options import WAIT_SECONDS
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, PACKAGE, ended, started
from tests.cli.test_command import COMMANDS


def test_version_is_printed(cli: CommandLine) -> None:
    assert cli("--version").stdout == f"{__version__}\n"


def test_commands_wait_as_long_as_the_library() -> None:
    assert WAIT_SECONDS == DEFAULT_TIMEOUT


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
    expected = cli(*group, "--help", NO_COLOR="1").stdout  # 80 columns wide in a CliRunner
    environment = {"PYTHONOPTIMIZE": "2", "COLUMNS": "82", "NO_COLOR": "1"}  # 2 are a margin
    with started(*COMMAND, *group, "--help", **environment) as process:
        output = ended(process)
    assert output == (expected, "", 0)


HEAVY = ("aiohttp", "anyio", "neonctl_async.client", "rich", "tenacity")


@pytest.mark.process
def test_help_imports_neither_the_client_nor_rich() -> None:
    """One process shows every help, because each process would import the program again."""
    groups = [(name,) for name, entry in ENTRIES.items() if entry.is_group]
    code = f"""
import sys
from neonctl_async.cli.app import app

def imported(*arguments, names):
    try:
        app(arguments, prog_name="neonctl-async")
    except SystemExit as end:
        assert not end.code, arguments
    found = [name for name in names if name in sys.modules]
    assert not found, (arguments, found)

sys.stdout = open({os.devnull!r}, "w")
for arguments in (("--help",), ("--version",)):
    imported(*arguments, names={(*HEAVY, "asyncio", "msgspec")})
    assert not any(name.startswith("neonctl_async.cli.commands.") for name in sys.modules)
for command in {[*groups, *COMMANDS]}:
    imported(*command, "--help", names={HEAVY})
"""
    with started(sys.executable, "-c", code) as process:
        output = ended(process)
    assert (output.err, output.code) == ("", 0)


@pytest.mark.process
def test_interrupted_import_is_an_interrupted_command(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    with started(*COMMAND, "projects", "list", PYTHONPATH=f"{tmp_path}:{PACKAGE}") as process:
        assert ended(process) == ("", "", 130)


@pytest.mark.process
def test_missing_extra_is_named_with_its_install_command(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    with started(*COMMAND, PYTHONPATH=f"{tmp_path}:{PACKAGE}") as process:
        output = ended(process)
    assert output.err == "neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n"
    assert (output.out, output.code) == ("", 2)
