"""``neonctl-async local`` is ``python -m neonctl_local``."""

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
