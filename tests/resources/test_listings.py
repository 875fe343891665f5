"""Paginators of the client's list methods, over a real socket."""

import asyncio
from contextlib import aclosing

import pytest

from neonctl_async import AuthenticationError, InvalidResponseError, NotFoundError
from tests.models.records import BRANCH, OPERATION, JsonObject
from tests.resources.wire import responding_in_sequence
from tests.support.records import PROJECT, client_of
from tests.support.server import (
    MisbehavingServer,
    Received,
    Respond,
    hang,
    http_response,
    in_sequence,
)


def operations(*ids: str, **more: object) -> JsonObject:
    return {"operations": [{**OPERATION, "id": id} for id in ids], **more}


def branches(*ids: str, **more: object) -> JsonObject:
    return {"branches": [{**BRANCH, "id": id} for id in ids], **more}


FIRST = operations("b", pagination={"cursor": "1"})
CURSOR = "2022-12-09T08:47:52.20417Z+/=&?"


async def test_operations_are_paged_by_cursor() -> None:
    async with responding_in_sequence(
        operations("b", pagination={"cursor": CURSOR}),
        operations("a", pagination={"cursor": "2"}),
        operations(),
    ) as exchange:
        listing = exchange.neon.operations.list(PROJECT, limit=1)
        assert [operation.id async for operation in listing] == ["b", "a"]
    assert [request.query for request in exchange.all_sent] == [
        {"limit": "1"},
        {"limit": "1", "cursor": CURSOR},
        {"limit": "1", "cursor": "2"},
    ]


async def test_branches_are_paged_by_next_in_the_same_order() -> None:
    order = {"sort_by": "name", "sort_order": "asc"}
    first = branches("br-1", pagination={"next": CURSOR, **order})
    async with responding_in_sequence(first, branches("br-2")) as exchange:
        listing = exchange.neon.branches.list(PROJECT, sort_by="name", sort_order="asc")
        assert [branch.id for branch in await listing.collect()] == ["br-1", "br-2"]
    assert [request.query for request in exchange.all_sent] == [order, {**order, "cursor": CURSOR}]


@pytest.mark.parametrize(
    "end",
    [
        {},
        {"pagination": None},
        {"pagination": {}},
        {"pagination": {"cursor": None}},
        {"pagination": {"cursor": ""}},
        {"pagination": {"cursor": "1"}},
    ],
)
async def test_paging_stops_after_the_last_page(end: dict[str, object]) -> None:
    async with responding_in_sequence(FIRST, operations("a", **end)) as exchange:
        found = await exchange.neon.operations.list(PROJECT).collect()
    assert [operation.id for operation in found] == ["b", "a"]
    assert len(exchange.all_sent) == 2


async def test_client_works_after_a_listing_was_abandoned() -> None:
    prefetched = asyncio.Event()

    def respond(request: Received) -> Respond:
        if "cursor=" not in request.target:
            return http_response(200, FIRST)
        prefetched.set()
        return hang

    async with MisbehavingServer(respond) as server, client_of(server) as neon:
        for _ in range(2):
            prefetched.clear()
            async with aclosing(neon.operations.list(PROJECT).pages()) as pages:
                assert [operation.id for operation in await anext(pages)] == ["b"]
                await prefetched.wait()
    assert len(server.received) == 4


async def test_collect_limit_saves_requests() -> None:
    first = operations("c", "b", pagination={"cursor": "1"})
    async with responding_in_sequence(first, operations("a")) as exchange:
        assert len(await exchange.neon.operations.list(PROJECT, limit=2).collect(2)) == 2
    assert len(exchange.all_sent) == 1


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (http_response(401, {"message": "revoked"}), AuthenticationError),
        (http_response(404, {"message": "gone"}), NotFoundError),
        (http_response(200, {"operations": "many"}), InvalidResponseError),
    ],
)
async def test_error_of_the_second_page_follows_the_first_page(
    failure: Respond, kind: type[Exception]
) -> None:
    seen: list[str] = []
    responses = in_sequence(http_response(200, FIRST), failure)
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        with pytest.raises(kind):
            async for operation in neon.operations.list(PROJECT):
                seen += [operation.id]
    assert seen == ["b"]
