"""Arguments and options are converted like typer does, without importing pydantic."""

import sys
from importlib.metadata import version
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from neonctl_async.cli.output import Output
from neonctl_async.cli.parameters import QuickCommand
from tests.cli.process import ended, started


def shown(*arguments: str, quick: bool) -> tuple[str, int]:
    """The converted values of a command, or its error."""
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=QuickCommand if quick else None)
    def show(
        names: Annotated[list[str] | None, typer.Argument()] = None,
        number: Annotated[int | None, typer.Option(min=1)] = None,
        seconds: Annotated[float, typer.Option(max=9.0)] = 1.5,
        output: Annotated[Output, typer.Option("-o")] = Output.TABLE,
        parsed: Annotated[int | None, typer.Option(parser=len)] = None,
        *,
        flag: Annotated[bool, typer.Option("--flag/--no-flag")] = True,
    ) -> None:
        typer.echo([names, number, seconds, output, parsed, flag])

    result = CliRunner().invoke(app, arguments)
    return result.output, result.exit_code


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "a b",
        "--number 3 --seconds 2 -o jsonl --no-flag",
        "--seconds 1e0",
        "--parsed text",
        "--number 1_0",
        "--unknown",
        "--number",
    ],
)
def test_values_are_those_of_typer(arguments: str) -> None:
    assert shown(*arguments.split(), quick=True) == shown(*arguments.split(), quick=False)


@pytest.mark.skipif(
    tuple(map(int, version("typer").split(".")[:2])) < (0, 27),
    reason="older releases of typer convert all values, with their own errors",
)
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--number 0", "'0' is not allowed: expected a whole number of at least 1"),
        ("--number x", "'x' is not allowed: expected a whole number of at least 1"),
        ("--number 1.5", "'1.5' is not allowed: expected a whole number of at least 1"),
        ("--seconds 10", "'10' is not allowed: expected a number of at most 9"),
        ("--seconds nan", "'nan' is not allowed: expected a number of at most 9"),
        ("-o JSON", "'JSON' is none of table, csv, json, jsonl, yaml, raw"),
        ("-o yam", "'yam' is none of table, csv, json, jsonl, yaml, raw; did you mean 'yaml'?"),
    ],
)
def test_errors_name_the_value_and_what_was_expected(arguments: str, error: str) -> None:
    output, code = shown(*arguments.split(), quick=True)
    option = arguments.split(maxsplit=1)[0]
    [line] = [line for line in output.splitlines() if line.startswith("Error: ")]
    assert line.startswith(f"Error: Invalid value for '{option}': ") or "-o" in line
    assert line.endswith(f": {error}")
    assert code == 2


@pytest.mark.process
def test_plain_values_are_converted_without_pydantic() -> None:
    code = """
import sys
from neonctl_async.cli.app import app
try:
    app(["projects", "list", "--limit", "3", "-o", "json"], prog_name="neonctl-async")
except SystemExit as end:
    print(end.code, "pydantic" in sys.modules)
"""
    with started(sys.executable, "-c", code, NEON_API_KEY="") as process:
        assert ended(process).out == "2 False\n"
