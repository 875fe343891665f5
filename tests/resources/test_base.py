"""The rules that all methods of all resources follow."""

from collections import UserDict, UserList
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from urllib.parse import unquote

import pytest

from neonctl_async import APIError, NeonClient, OperationFailedError, WaitTimeoutError
from neonctl_async.transport.encoding import NAMES
from neonctl_async.types import Branch, BranchUpdated, OperationsResponse, Role
from tests.models import records
from tests.resources.wire import responding_with
from tests.support.arguments import every_argument, may_be_null
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.methods import METHODS, Method, public_methods
from tests.support.records import client_of, operation_json
from tests.support.server import http_response

STARTING_METHODS = [method for method in METHODS if method.takes_wait]
TIMESTAMPS = [(method, name) for method in METHODS for name in method.timestamps]
LISTS = [(method, name) for method in METHODS for name in method.lists]
LISTING_METHODS = [method for method in METHODS if "limit" in method.parameters]
LARGEST_PAGES: dict[str, int | None] = {
    "branches.list": 10_000,
    "consumption.branches_v2": 1000,
    "consumption.projects": 100,
    "consumption.projects_v2": 100,
    "custom_domains.list": 1000,
    "functions.list": 1000,
    "logs.list_field_values": None,
    "logs.query": 1000,
    "operations.list": 1000,
    "organizations.list_members": 500,
    "projects.list": 400,
    "projects.list_members": None,
    "projects.list_shared": 400,
    "storage.list_objects": 1000,
}
"""The largest page of each list. None for lists without a published limit."""
SEQUENCES = [["a", "b"], ("a", "b"), UserList(["a", "b"])]
NOTES = {"team": "shop"}
NAIVE = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
RESPONSE: records.JsonObject = {
    "branch": {**records.BRANCH, "parent_id": "br-0"},
    "database": records.DATABASE,
    "endpoint": records.ENDPOINT,
    "jwks": records.JWKS,
    "operations": [operation_json("op-1", project_id="p-1", at=-1)],
    "project": records.PROJECT,
    "role": records.ROLE,
    "snapshot": records.SNAPSHOT,
}
"""A response that every request that starts an operation accepts."""
ROLE = records.decode(Role, records.ROLE)


async def call(method: Method, neon: NeonClient, **arguments: object) -> object:
    """Call a method with ``arguments``, and with values for its other required parameters."""
    defaults = every_argument(method)
    return await method.call(neon, {name: defaults[name] for name in method.required} | arguments)


@asynccontextmanager
async def starting_an_operation(status: str) -> AsyncGenerator[NeonClient]:
    """Run a client whose requests start an operation that finishes one second later."""
    fake_neon = FakeNeon()
    fake_neon.start("op-1", ends=1.0, status=status, project_id="p-1")
    response = http_response(200, RESPONSE)
    fake_neon.fault = lambda request: None if "/operations" in request.path else response
    async with fake_neon, client_of(fake_neon) as neon:
        yield neon


async def test_unknown_keyword_raises_a_type_error() -> None:
    neon = NeonClient("key")
    for method in public_methods():
        required = dict.fromkeys(method.required, "x")
        with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
            await method.call(neon, {**required, "nmae": "preview"})


def test_methods_that_start_operations_are_found() -> None:
    assert len(STARTING_METHODS) >= 26


@pytest.mark.virtual_time
@pytest.mark.parametrize("method", STARTING_METHODS, ids=str)
async def test_wait_returns_the_final_records(method: Method) -> None:
    async with starting_an_operation("finished") as neon:
        started = await call(method, neon, wait=True)
    assert isinstance(started, OperationsResponse)
    assert [(operation.id, operation.status) for operation in started.operations] == [
        ("op-1", "finished")
    ]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "method", {method.resource: method for method in STARTING_METHODS}.values(), ids=str
)
async def test_failed_wait_carries_the_response(method: Method) -> None:
    async with starting_an_operation("failed") as neon:
        with pytest.raises(OperationFailedError) as caught:
            await call(method, neon, wait=5.0)
    assert isinstance(caught.value.result, OperationsResponse)
    assert [operation.status for operation in caught.value.result.operations] == ["failed"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("method", STARTING_METHODS, ids=str)
async def test_numeric_wait_is_the_timeout(method: Method) -> None:
    async with starting_an_operation("finished") as neon:
        with pytest.raises(WaitTimeoutError):
            await call(method, neon, wait=0.5)
        assert now() < 1.0


@pytest.mark.parametrize("resource", sorted({method.resource for method in METHODS if method.ids}))
async def test_id_that_would_change_the_path_is_rejected(resource: str) -> None:
    async with responding_with() as exchange:
        for method in METHODS:
            for name in method.ids if method.resource == resource else ():
                for id in ("", ".", "..", "a/../b" if name in NAMES else "a/b"):
                    with pytest.raises(ValueError, match=f"^{name} is "):
                        await call(method, exchange.neon, **{name: id})
    assert exchange.server.received == []


@pytest.mark.parametrize("name", ["a/b", "/", "a//b", "/etc/passwd", "my/\\ app"])
async def test_name_with_a_slash_is_one_segment_of_the_path(name: str) -> None:
    for method in METHODS:
        for parameter in NAMES.intersection(method.ids):
            async with responding_with(RESPONSE, status=400) as exchange:
                with pytest.raises(APIError):
                    await call(method, exchange.neon, **{parameter: name})
            segments = [unquote(part) for part in exchange.sent.path.split("/")]
            assert name in segments


@pytest.mark.parametrize("method", METHODS, ids=str)
async def test_none_is_rejected_before_the_request_where_the_api_has_no_null(
    method: Method,
) -> None:
    async with responding_with() as exchange:
        for name in method.parameters.keys() - may_be_null(method):
            with pytest.raises(TypeError, match=rf"^{name.rstrip('_')}\b.* is None: (exp|pass)"):
                await call(method, exchange.neon, **{name: None})
    assert exchange.server.received == []


@pytest.mark.parametrize("method", METHODS, ids=str)
async def test_record_in_place_of_its_id_or_name_is_rejected_with_a_hint(method: Method) -> None:
    branch = records.decode(Branch, records.BRANCH)
    created = records.decode(BranchUpdated, RESPONSE)
    async with responding_with() as exchange:
        for name in method.parameters:
            if name.endswith("_name"):
                with pytest.raises(TypeError, match=rf"^{name} is a Role: pass its name, as in "):
                    await call(method, exchange.neon, **{name: ROLE})
            if name.endswith("_id") and method.hints[name] is not int:
                with pytest.raises(TypeError, match=rf"^{name} is a Branch: pass its id, as in "):
                    await call(method, exchange.neon, **{name: branch})
            if name == "branch_id":
                with pytest.raises(TypeError, match=r": pass the id of its branch, as in "):
                    await call(method, exchange.neon, **{name: created})
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("method", "name"), TIMESTAMPS, ids=[f"{method}({name})" for method, name in TIMESTAMPS]
)
async def test_datetime_without_time_zone_is_rejected_before_the_request(
    method: Method, name: str
) -> None:
    async with responding_with() as exchange:
        with pytest.raises(ValueError, match=rf"^{name.rstrip('_')} is 2026-01.*time zone"):
            await call(method, exchange.neon, **{name: NAIVE})
    assert exchange.server.received == []


@pytest.mark.parametrize("method", LISTING_METHODS, ids=str)
async def test_page_size_out_of_range_is_rejected_before_the_request(method: Method) -> None:
    largest = LARGEST_PAGES[str(method)]
    limits = "1 or more" if largest is None else f"1 to {largest}"
    async with responding_with() as exchange:
        for limit in (0, *([] if largest is None else [largest + 1])):
            with pytest.raises(ValueError, match=f"^limit is {limit}: expected {limits}$"):
                await call(method, exchange.neon, limit=limit)
        for invalid in (True, "10", 10.0, None):
            with pytest.raises(
                TypeError, match=f"^limit is {invalid!r}: expected an int, {limits}$"
            ):
                await call(method, exchange.neon, limit=invalid)
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("method", "name"), LISTS, ids=[f"{method}({name})" for method, name in LISTS]
)
async def test_string_is_rejected_as_a_list(method: Method, name: str) -> None:
    async with responding_with() as exchange:
        with pytest.raises(TypeError, match=f"^{name} is 'p-1': expected a list"):
            await call(method, exchange.neon, **{name: "p-1"})
        for value in (7, None, {"p-1": 1}, ROLE):
            with pytest.raises(
                TypeError, match=rf"^{name} is .*: expected a list, as in {name}=\["
            ):
                await call(method, exchange.neon, **{name: value})
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method, name in LISTS if method.resource == "consumption"],
    ids=str,
)
async def test_empty_filter_is_rejected(method: Method, name: str) -> None:
    async with responding_with() as exchange:
        with pytest.raises(ValueError, match=f"^{name} is empty"):
            await call(method, exchange.neon, **{name: ()})
    assert exchange.server.received == []


@pytest.mark.parametrize("sequence", SEQUENCES)
async def test_sequence_is_sent_as_a_json_array(sequence: Sequence[str]) -> None:
    async with responding_with({}) as exchange:
        await exchange.neon.organizations.transfer_projects(
            "org-1", destination_org_id="org-2", project_ids=sequence
        )
    assert exchange.sent.body == {"destination_org_id": "org-2", "project_ids": ["a", "b"]}


@pytest.mark.parametrize("sequence", SEQUENCES)
async def test_sequence_is_sent_as_a_repeated_query_parameter(sequence: Sequence[str]) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    async with responding_with({"projects": []}) as exchange:
        await exchange.neon.consumption.projects(
            from_=noon, to=noon, granularity="daily", project_ids=sequence
        ).collect()
    assert exchange.sent.query["project_ids"] == ["a", "b"]


@pytest.mark.parametrize("notes", [NOTES, MappingProxyType(NOTES), UserDict(NOTES)])
async def test_mapping_is_sent_as_a_json_object(notes: Mapping[str, str]) -> None:
    async with responding_with(RESPONSE) as exchange:
        await exchange.neon.branches.create("p-1", annotation_value=notes)
    assert exchange.sent.body == {"annotation_value": NOTES}
