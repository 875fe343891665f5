"""The page of endpoints is up to date."""

from collections.abc import Mapping

import pytest

from tests.contract.calls import Call
from tests.contract.description import Description
from tests.contract.endpoints import PAGE, method_of_each, page
from tests.support.methods import Method

pytestmark = pytest.mark.contract


def test_the_page_of_endpoints_is_up_to_date(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    expected = page(description, method_of_each(description, calls))
    assert PAGE.read_text() == expected, "make endpoints writes it anew"
