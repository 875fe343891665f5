import pytest

from neonctl_async.models.operations import OperationsPage
from neonctl_async.types import Pagination
from tests.models.answers import decode


def test_both_styles_of_cursor_are_kept() -> None:
    assert decode(Pagination, {"cursor": "a=/+ b"}) == Pagination(cursor="a=/+ b")
    shown = {"next": "n", "sort_by": "updated_at", "sort_order": "desc"}
    assert decode(Pagination, shown) == Pagination(
        next="n", sort_by="updated_at", sort_order="desc"
    )


@pytest.mark.parametrize("end", [{}, {"pagination": None}])
def test_a_page_may_come_without(end: dict[str, None]) -> None:
    assert decode(OperationsPage, {"operations": [], **end}).pagination is None
