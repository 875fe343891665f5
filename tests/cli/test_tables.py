from collections.abc import Sequence

import pytest

from neonctl_async.cli.styles import Text
from neonctl_async.cli.tables import fitted, natural, table

ID = "i" * 26


def lines(
    titles: Sequence[str],
    *rows: Sequence[str],
    width: int = 1000,
    whole: Sequence[str] = ("ID",),
    first: Sequence[str] = (),
) -> list[str]:
    cells = [[Text(cell) for cell in row] for row in rows]
    shown = fitted(natural(titles, cells), width, whole=whole, first=first)
    return [line.plain for line in table(titles, cells, shown)]


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


def test_column_that_does_not_fit_is_left_out() -> None:
    cut = lines(["ID", "Name", "Created"], [ID, "n" * 20, "2026-11-22 18:25"], width=45)
    assert cut == [f"ID{' ' * 26}Name", f"{ID}  {'n' * 16}…"]


def test_first_columns_stay_and_others_fill_what_is_left() -> None:
    row = [ID, "n" * 20, "active", "1.5 s"]
    assert lines(["ID", "Name", "State", "Time"], row, width=33, first=["State"]) == [
        "Name                State   Time",
        f"{'n' * 17}…  active  1.5 s",
    ]


def test_last_column_may_be_shorter_than_others() -> None:
    assert lines(["ID", "Error"], [ID, "no such branch"], width=37) == [
        f"ID{' ' * 26}Error",
        f"{ID}  no such …",
    ]


def test_last_column_is_left_out_if_its_title_does_not_fit() -> None:
    titles, row = ["ID", "History GB-months"], [ID, "0.2"]
    assert lines(titles, row, width=37) == ["ID", ID]
    assert lines(titles, width=20) == ["ID"]


def test_first_columns_are_cut_below_the_smallest_width_rather_than_left_out() -> None:
    cut = lines(["Name", "State"], ["n" * 20, "active"], width=14, first=["State", "Name"])
    assert cut == ["Name    State", f"{'n' * 5}…  active"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120])
def test_table_fits_and_keeps_its_first_columns(width: int) -> None:
    widths = {"ID": 26, "Name": 63, "State": 8, "Expires": 16, "Created": 16}
    shown = fitted(widths, width, whole=("ID",), first=("State", "Name"))
    assert {"State", "Name"} <= set(shown)
    assert list(shown) == [title for title in widths if title in shown]
    assert sum(shown.values()) + 2 * (len(shown) - 1) <= width
    assert shown["State"] == 8
    assert shown.get("ID", 26) == 26
