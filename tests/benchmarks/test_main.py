"""The command line of the benchmarks."""

import sys

import pytest

from benchmarks import __main__ as program
from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize


@pytest.mark.parametrize(("limit", "code"), [(1.0, 0), (0.9, 1)])
def test_exit_status_is_1_if_a_target_is_missed(
    limit: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(size: RunSize) -> list[Row]:
        assert size is RunSize.QUICK
        return [make_row("GET", "alone", "ms", {OURS: [1.0]}, targets=[Target(limit)])]

    group = program.CLIENT._replace(scenarios={"get": scenario})
    monkeypatch.setattr(program, "GROUPS", {"client": group})
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick"])
    assert program.main() == code
    assert ("MISSED: GET, alone" in capsys.readouterr().out) is bool(code)
