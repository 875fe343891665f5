"""The newest description and the older one differ in known ways only."""

import re
from typing import Any

import pytest

from tests.contract.changes import changes
from tests.contract.description import Description
from tests.contract.known import CHANGED, UNPUBLISHED, UNPUBLISHED_PARAMETERS
from tests.contract.problems import assert_none

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def older() -> Description:
    return Description.older()


def test_endpoints_of_one_description_are_known(
    older: Description, description: Description
) -> None:
    before, after = ({str(endpoint) for endpoint in d.endpoints} for d in (older, description))
    assert_none("endpoints that only the older description has", before - after)
    published = {
        str(endpoint) for endpoint in description.endpoints if endpoint.stability != "unpublished"
    }
    assert before - published == UNPUBLISHED.keys()


def test_each_difference_has_a_reason(older: Description, description: Description) -> None:
    # What is new needs none: other tests demand a keyword or a field for it.
    compared = (change for change in changes(older, description) if change.part is not None)
    found = [str(change) for change in compared if change.sign != "+"]
    unknown = [line for line in found if not any(re.search(f"(?:{end})$", line) for end in CHANGED)]
    assert_none("differences without an entry in CHANGED", unknown)
    needless = [end for end in CHANGED if not any(re.search(f"(?:{end})$", line) for line in found)]
    assert_none("entries of CHANGED that do not differ", needless)


def test_unpublished_parameters_are_gone(older: Description) -> None:
    names = {str(endpoint): endpoint for endpoint in older.endpoints}
    for endpoint, parameters in UNPUBLISHED_PARAMETERS.items():
        assert parameters.keys() <= names[endpoint].query.keys()


def test_changed_description_is_listed(description: Description) -> None:
    document = description.document
    paths = dict(document["paths"])
    del paths["/regions"]
    projects = paths["/projects"]
    added: dict[str, Any] = {"name": "tag", "in": "query", "schema": {}}
    parameters = [*projects["get"]["parameters"], added]
    paths["/projects"] = projects | {"get": projects["get"] | {"parameters": parameters}}
    paths["/moons"] = {"get": {"operationId": "listMoons", "responses": {"204": {}}}}
    newer = Description(document | {"paths": paths}, "7.0.0")

    assert [*map(str, changes(description, newer))] == [
        "- GET /regions",
        "+ GET /moons",
        "+ GET /projects: parameter tag",
    ]
