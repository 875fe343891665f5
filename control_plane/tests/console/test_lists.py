"""Pages and searches of complete lists."""

import pytest

from neonctl_local.console.lists import ROWS, ListPage, list_page


def page(count: int, **query: str) -> ListPage[int]:
    return list_page(range(count), query, lambda row: [f"Key {row}"])


def test_short_list_has_one_page() -> None:
    shown = page(ROWS)
    assert list(shown.rows) == list(range(ROWS))
    assert (shown.newer, shown.older, shown.summary) == ("", "", "")


def test_long_list_has_pages() -> None:
    first, second, last = (page(120, page=number) for number in ("1", "2", "3"))
    assert (first.newer, first.older, first.summary) == ("", "?page=2", "1 to 50 of 120")
    assert (second.newer, second.older, second.rows[0]) == ("?page=1", "?page=3", 50)
    assert (last.newer, last.older, last.summary) == ("?page=2", "", "101 to 120 of 120")


def test_search_ignores_case_and_keeps_its_pages() -> None:
    shown = page(1200, search=" KEY 11 ")
    assert list(shown.rows) == [11, *range(110, 120), *range(1100, 1139)]
    assert (shown.found, shown.total) == (111, 1200)
    assert shown.older == "?search=KEY+11&page=2"


def test_search_without_a_match_has_no_rows() -> None:
    shown = page(120, search="none")
    assert (list(shown.rows), shown.found, shown.older) == ([], 0, "")


@pytest.mark.parametrize("number", ["0", "-1", "x", "", "²", "9" * 5000])
def test_number_that_is_no_page_means_the_first_page(number: str) -> None:
    assert page(120, page=number).rows[0] == 0


def test_page_after_the_last_means_the_last_page() -> None:
    assert page(120, page="999999").rows[0] == 100
    assert list(page(0, page="7").rows) == []
