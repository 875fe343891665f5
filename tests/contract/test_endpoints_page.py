"""The page that lists every endpoint is up to date."""

from collections.abc import Mapping

import pytest

from tests.contract.calls import Call
from tests.contract.description import Description
from tests.contract.endpoints import PAGE, methods_by_endpoint, page
from tests.support.methods import Method

pytestmark = pytest.mark.contract


def test_page_lists_the_published_endpoints(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    expected = page(description, methods_by_endpoint(description, calls))
    assert PAGE.read_text() == expected, "run make endpoints to update the page"
