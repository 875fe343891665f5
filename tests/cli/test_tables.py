from collections.abc import Sequence

import pytest

from neonctl_async.cli.styles import Text
from neonctl_async.cli.tables import fitted, table


def lines(titles: Sequence[str], *rows: Sequence[str], width: int | None = None) -> list[str]:
    cells = [[Text(cell) for cell in row] for row in rows]
    return [line.plain for line in table(titles, cells, width=width, whole=("ID",))]


def test_columns_are_aligned_without_trailing_spaces() -> None:
    assert lines(["ID", "Name", "Note"], ["1", "one", ""], ["22", "", "x"]) == [
        "ID  Name  Note",
        "1   one",
        "22        x",
    ]


def test_table_without_rows_has_only_titles() -> None:
    assert lines(["ID", "Name"]) == ["ID  Name"]


def test_widest_column_is_cut_first() -> None:
    long, short = "a" * 30, "b" * 17
    assert lines(["ID", "Name", "State"], ["1", long, short], width=45) == [
        "ID  Name                    State",
        f"1   {'a' * 21}…  {short}",
    ]


def test_columns_at_the_end_are_left_out_if_they_do_not_fit() -> None:
    whole = "i" * 26
    cut = lines(["ID", "Name", "Created"], [whole, "n" * 20, "2026-11-22 18:25"], width=45)
    assert cut == [f"ID{' ' * 26}Name", f"{whole}  {'n' * 16}…"]


def test_last_column_may_be_shorter_than_others() -> None:
    whole = "i" * 26
    assert lines(["ID", "Created"], [whole, "2026-11-22 18:25"], width=37) == [
        f"ID{' ' * 26}Created",
        f"{whole}  2026-11-…",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120])
def test_cut_table_fits_and_keeps_its_first_column(width: int) -> None:
    widths = {"ID": 26, "Name": 63, "State": 8, "Expires": 19, "Created": 19}
    shown = fitted(widths, width, ("ID",))
    assert list(shown) == list(widths)[: len(shown)]
    assert sum(shown.values()) + 2 * (len(shown) - 1) <= max(width, 26)
    assert shown["ID"] == 26
