"""Each published error status has an exception."""

import pytest

from neonctl_async.errors import APIError
from tests.contract.description import Description
from tests.contract.problems import assert_none

pytestmark = pytest.mark.contract

PLAIN = {400, 406, 410, 412, 422}
"""The statuses of invalid requests. No program handles them in different ways."""


def test_each_published_error_status_has_an_exception(description: Description) -> None:
    published = {status for endpoint in description.endpoints for status in endpoint.error_statuses}
    without = {status for status in published if APIError.for_status(status) is APIError}
    assert_none(
        "error statuses without an exception: add it to errors.py, or the status to PLAIN",
        map(str, without - PLAIN),
    )
    assert_none("entries of PLAIN that are not published", map(str, PLAIN - without))
