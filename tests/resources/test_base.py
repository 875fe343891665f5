"""What holds for every method of every resource."""

from collections import UserDict, UserList
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from neonctl_async import NeonClient, OperationFailedError, WaitTimeoutError
from neonctl_async.types import OperationsResponse
from tests.models.records import (
    BRANCH,
    DATABASE,
    ENDPOINT,
    JWKS,
    PROJECT,
    ROLE,
    SNAPSHOT,
    JsonObject,
)
from tests.resources.wire import answering
from tests.support.arguments import every_argument
from tests.support.clock import now
from tests.support.methods import METHODS, Method
from tests.support.platform import Platform
from tests.support.records import client_of, operation_json
from tests.support.server import http_response

STARTING = [method for method in METHODS if method.takes_wait]
DATED = [(method, name) for method in METHODS for name in method.moments]
LISTS = [(method, name) for method in METHODS for name in method.lists]
LISTING = [method for method in METHODS if "limit" in method.parameters]
LARGEST_PAGES = {
    "branches.list": 10_000,
    "consumption.branches_v2": 1000,
    "consumption.projects": 100,
    "consumption.projects_v2": 100,
    "operations.list": 1000,
    "organizations.list_members": 500,
    "projects.list": 400,
    "projects.list_shared": 400,
}
SEVERAL = [["a", "b"], ("a", "b"), UserList(["a", "b"])]
NOTES = {"team": "shop"}
NAIVE = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
MADE: JsonObject = {
    "branch": {**BRANCH, "parent_id": "br-0"},
    "database": DATABASE,
    "endpoint": ENDPOINT,
    "jwks": JWKS,
    "operations": [operation_json("op-1", project_id="p-1", at=-1)],
    "project": PROJECT,
    "role": ROLE,
    "snapshot": SNAPSHOT,
}
"""What serves for the answer of any request that starts an operation."""


async def call(method: Method, neon: NeonClient, **arguments: object) -> object:
    """Call a method with ``arguments``, and with whatever else it requires."""
    usual = every_argument(method)
    return await method.call(neon, {name: usual[name] for name in method.required} | arguments)


@asynccontextmanager
async def starting(status: str) -> AsyncGenerator[NeonClient]:
    """A client whose requests start an operation that ends a second later."""
    platform = Platform()
    platform.start("op-1", ends=1.0, status=status, project_id="p-1")
    made = http_response(200, MADE)
    platform.fault = lambda request: None if "/operations" in request.path else made
    async with platform.server, client_of(platform.server) as neon:
        yield neon


def test_what_starts_operations_is_here() -> None:
    assert len(STARTING) >= 26


@pytest.mark.virtual_time
@pytest.mark.parametrize("method", STARTING, ids=str)
async def test_wait_brings_the_final_records(method: Method) -> None:
    async with starting("finished") as neon:
        started = await call(method, neon, wait=True)
    assert isinstance(started, OperationsResponse)
    assert [(one.id, one.status) for one in started.operations] == [("op-1", "finished")]


@pytest.mark.virtual_time
@pytest.mark.parametrize("method", {one.resource: one for one in STARTING}.values(), ids=str)
async def test_a_failed_wait_carries_what_was_made(method: Method) -> None:
    async with starting("failed") as neon:
        with pytest.raises(OperationFailedError) as caught:
            await call(method, neon, wait=5.0)
    assert isinstance(caught.value.result, OperationsResponse)
    assert [one.status for one in caught.value.result.operations] == ["failed"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("method", STARTING, ids=str)
async def test_a_number_is_how_long_it_waits(method: Method) -> None:
    async with starting("finished") as neon:
        with pytest.raises(WaitTimeoutError):
            await call(method, neon, wait=0.5)
        assert now() < 1.0


@pytest.mark.parametrize("resource", sorted({one.resource for one in METHODS if one.ids}))
async def test_an_id_that_would_change_the_path_is_refused(resource: str) -> None:
    async with answering() as exchange:
        for method in METHODS:
            for name in method.ids if method.resource == resource else ():
                for id in ("", ".", "..", "a/b"):
                    with pytest.raises(ValueError, match=f"^{name} is "):
                        await call(method, exchange.neon, **{name: id})
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("method", "name"), DATED, ids=[f"{method}({name})" for method, name in DATED]
)
async def test_a_naive_datetime_is_refused_before_anything_is_sent(
    method: Method, name: str
) -> None:
    async with answering() as exchange:
        with pytest.raises(ValueError, match=rf"^{name.rstrip('_')} is 2026-01.*time zone"):
            await call(method, exchange.neon, **{name: NAIVE})
    assert exchange.server.received == []


@pytest.mark.parametrize("method", LISTING, ids=str)
async def test_a_page_size_out_of_range_is_refused_before_anything_is_sent(method: Method) -> None:
    largest = LARGEST_PAGES[str(method)]
    async with answering() as exchange:
        for limit in (0, largest + 1):
            with pytest.raises(ValueError, match=f"^limit is {limit}: expected 1 to {largest}$"):
                await call(method, exchange.neon, limit=limit)
        for odd in (True, "10", 10.0, None):
            with pytest.raises(TypeError, match=f"^limit is {odd!r}: expected an int"):
                await call(method, exchange.neon, limit=odd)
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("method", "name"), LISTS, ids=[f"{method}({name})" for method, name in LISTS]
)
async def test_a_string_is_no_list(method: Method, name: str) -> None:
    async with answering() as exchange:
        with pytest.raises(TypeError, match=f"^{name} is 'p-1': expected a list"):
            await call(method, exchange.neon, **{name: "p-1"})
    assert exchange.server.received == []


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method, name in LISTS if method.resource == "consumption"],
    ids=str,
)
async def test_a_filter_that_names_none_is_not_taken_for_all(method: Method, name: str) -> None:
    async with answering() as exchange:
        with pytest.raises(ValueError, match=f"^{name} is empty"):
            await call(method, exchange.neon, **{name: ()})
    assert exchange.server.received == []


@pytest.mark.parametrize("several", SEVERAL)
async def test_any_sequence_is_a_list_on_the_wire(several: Sequence[str]) -> None:
    async with answering({}) as exchange:
        await exchange.neon.organizations.transfer_projects(
            "org-1", destination_org_id="org-2", project_ids=several
        )
    assert exchange.asked.body == {"destination_org_id": "org-2", "project_ids": ["a", "b"]}


@pytest.mark.parametrize("several", SEVERAL)
async def test_any_sequence_is_a_repeated_query_parameter(several: Sequence[str]) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    async with answering({"projects": []}) as exchange:
        await exchange.neon.consumption.projects(
            from_=noon, to=noon, granularity="daily", project_ids=several
        ).collect()
    assert exchange.asked.query["project_ids"] == ["a", "b"]


@pytest.mark.parametrize("notes", [NOTES, MappingProxyType(NOTES), UserDict(NOTES)])
async def test_any_mapping_is_an_object_on_the_wire(notes: Mapping[str, str]) -> None:
    async with answering(MADE) as exchange:
        await exchange.neon.branches.create("p-1", annotation_value=notes)
    assert exchange.asked.body == {"annotation_value": NOTES}
