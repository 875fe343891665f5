"""The contract tests fail for each kind of thing that the library lacks, and state what to add.

The library lacks nothing that is published. The description therefore gets an addition here.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.contract import test_coverage, test_errors, test_requests, test_structs
from tests.contract.calls import Call
from tests.contract.description import Description
from tests.support.methods import Method

pytestmark = pytest.mark.contract

Calls = Mapping[Method, Call | Exception]
Document = dict[str, Any]  # Any: parts of a JSON document
Check = Callable[[Description, Calls], object]


def check_method(
    name: str, check: Callable[..., None], description: Description, calls: Calls
) -> None:
    """Run a test of one method."""
    [call] = [call for method, call in calls.items() if str(method) == name]
    assert isinstance(call, Call)
    endpoint = description.endpoint_of(call.exchange.method, call.exchange.path)
    check(call=call, endpoint=endpoint, description=description)


def requests_of(name: str) -> Check:
    """Return the check of the names that a method can send."""
    check = test_requests.test_every_published_name_can_be_sent
    return lambda description, calls: check_method(name, check, description, calls)


def choices_of(name: str) -> Check:
    """Return the check of the choices of a method."""
    check = test_requests.test_choices_are_the_published_ones
    return lambda description, calls: check_method(name, check, description, calls)


def enumerations_of(name: str) -> Check:
    """Return the check of the enumerations whose members a method can send."""
    check = test_requests.test_enumerations_have_every_published_choice
    return lambda description, calls: check_method(name, check, description, calls)


def pages_of(name: str) -> Check:
    """Return the check of whether a method is paginated."""
    check = test_requests.test_only_lists_with_a_cursor_are_paginated
    return lambda description, calls: check_method(name, check, description, calls)


def structs_of(name: str) -> Check:
    """Return the check of the records that a method returns."""
    check = test_structs.test_structs_have_every_published_field
    return lambda description, calls: check_method(name, check, description, calls)


def errors(description: Description, _: Calls) -> None:
    test_errors.test_each_published_error_status_has_an_exception(description)


def add_endpoint(document: Document) -> None:
    document["paths"]["/moons"] = {"get": {"operationId": "listMoons", "responses": {"204": {}}}}


def add_parameter(document: Document) -> None:
    added = {"name": "moon", "in": "query", "schema": {"type": "string"}}
    document["paths"]["/projects"]["get"]["parameters"].append(added)


def add_cursor(document: Document) -> None:
    added = {"name": "cursor", "in": "query", "schema": {"type": "string"}}
    document["paths"]["/regions"]["get"]["parameters"].append(added)


def add_enumeration(document: Document) -> None:
    added = {"name": "moon", "in": "query", "schema": {"type": "string", "enum": ["crescent"]}}
    document["paths"]["/projects"]["get"]["parameters"].append(added)


def add_choice(document: Document) -> None:
    parameters = document["paths"]["/projects/{project_id}/branches"]["get"]["parameters"]
    [order] = [parameter for parameter in parameters if parameter["name"] == "sort_order"]
    order["schema"]["enum"].append("random")


def add_body_field(document: Document) -> None:
    create = document["paths"]["/projects/{project_id}/branches"]["post"]
    body = create["requestBody"]["content"]["application/json"]["schema"]
    body["properties"]["branch"]["properties"]["moon"] = {"type": "string"}


def add_field(document: Document) -> None:
    document["components"]["schemas"]["Branch"]["properties"]["moon"] = {"type": "string"}


def add_member(document: Document) -> None:
    document["components"]["schemas"]["OperationAction"]["enum"].append("launch_moon")


def add_choice_of_items(document: Document) -> None:
    document["components"]["schemas"]["CredentialScope"]["enum"].append("launch_moon")


def add_error_status(document: Document) -> None:
    document["paths"]["/regions"]["get"]["responses"]["418"] = {"description": ""}


ADDITIONS: Mapping[str, tuple[Callable[[Document], None], Check, str]] = {
    "endpoint": (
        add_endpoint,
        test_coverage.test_every_endpoint_has_a_method,
        "endpoints without a method: add one, as docs/contributing.md describes:\n  GET /moons",
    ),
    "parameter": (
        add_parameter,
        requests_of("projects.list"),
        "no parameter sends moon: add a keyword, or an entry with a reason to NOT_SENT",
    ),
    "cursor": (add_cursor, pages_of("regions.list"), "a cursor is published: paginate"),
    "enumeration": (
        add_enumeration,
        enumerations_of("projects.list"),
        "moon: crescent is missing: add it to a new enumeration in types.py",
    ),
    "choice": (
        add_choice,
        choices_of("branches.list"),
        "sort_order: random is missing: add it to the Literal",
    ),
    "field of a body": (
        add_body_field,
        requests_of("branches.create"),
        "no parameter sends branch.moon: add a keyword, or an entry with a reason to NOT_SENT",
    ),
    "field of a response": (
        add_field,
        structs_of("branches.get"),
        "Branch.moon: missing, add the field (string)",
    ),
    "member of an enumeration": (
        add_member,
        structs_of("operations.list"),
        "OperationAction: launch_moon is missing, add the member",
    ),
    "choice of items": (
        add_choice_of_items,
        enumerations_of("credentials.create"),
        "scopes: launch_moon is missing: add it to CredentialScope",
    ),
    "error status": (
        add_error_status,
        errors,
        "error statuses without an exception: add it to errors.py, or the status to PLAIN:\n  418",
    ),
}
"""Additions to the description, with the test that finds each and its message."""


@pytest.mark.parametrize(("add", "check", "message"), ADDITIONS.values(), ids=ADDITIONS)
def test_missing_part_is_reported(
    add: Callable[[Document], None],
    check: Check,
    message: str,
    description: Description,
    calls: Calls,
) -> None:
    check(description, calls)
    document = copy.deepcopy(description.document)
    add(document)
    assert message in failure(check, Description(document, "7.0.0"), calls)


def test_deleted_method_is_reported(description: Description, calls: Calls) -> None:
    # Every method is found like this one: no endpoint has two methods.
    rest = {method: call for method, call in calls.items() if str(method) != "credentials.rotate"}
    message = failure(test_coverage.test_every_endpoint_has_a_method, description, rest)
    assert "endpoints without a method: add one" in message
    assert "/credentials/{token_id}/rotate" in message


def failure(check: Check, description: Description, calls: Calls) -> str:
    """Return the message of a check that fails."""
    with pytest.raises(pytest.fail.Exception) as caught:
        check(description, calls)
    return str(caught.value)
