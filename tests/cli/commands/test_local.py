"""``neonctl-async local`` is ``python -m neonctl_local``."""

import subprocess
import sys

import pytest

from neonctl_local.__main__ import main
from tests.cli.conftest import CommandLine


def test_local_has_the_options_of_the_module(
    cli: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = cli("local", "--help", COLUMNS="80")
    assert shown.stdout.startswith("usage: neonctl-async local [-h]")
    assert options(shown.stdout) == options(capsys.readouterr().out)


def options(shown: str) -> list[str]:
    return [word for word in shown.partition("options:")[2].split() if word.startswith("--")]


def test_invalid_server_option_is_a_usage_error(cli: CommandLine) -> None:
    result = cli("local", "--port", "99999")
    assert "99999" in result.stderr
    assert result.exit_code == 2


@pytest.mark.process
@pytest.mark.parametrize("command", [("local",), ("local", "user", "create"), ("demo",)])
def test_without_the_server_the_commands_print_how_to_install_it(command: tuple[str, ...]) -> None:
    program = (
        "import sys; sys.modules['neonctl_local'] = None; "
        "from neonctl_async.__main__ import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, check=False
    )
    assert ended.stderr == (
        "error: the local control plane is not installed: pip install 'neonctl-async[cli,local]'\n"
    )
    assert (ended.stdout, ended.returncode) == ("", 2)


@pytest.mark.process
def test_client_and_the_other_commands_need_no_server() -> None:
    program = (
        "import sys; sys.modules['neonctl_local'] = None; "
        "import neonctl_async.client, neonctl_async.types, neonctl_async.testing; "
        "from neonctl_async.testing import loop_clock; "
        "from neonctl_async.cli.app import ENTRIES, load; "
        "print([load(name).name for name in ENTRIES] == [*ENTRIES])"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == ("True\n", "")
