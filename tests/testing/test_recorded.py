"""Clients get recorded responses, without a server."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from neonctl_async import NeonClient, NotFoundError, OperationFailedError, RetryPolicy, Secret
from neonctl_async.testing.recorded import (
    Content,
    RecordedRequest,
    RecordedResponses,
    UnrecordedRequestError,
)
from neonctl_async.types import ApiKeyCreated, Region
from tests.models.services.storage_records import DEPLOYMENT
from tests.support.clock import now
from tests.support.records import API_KEY, PROJECT, branch_json, operation_json, ref

OPERATION = f"/projects/{PROJECT}/operations/op-1"
BRANCHES = f"/projects/{PROJECT}/branches"
FRANKFURT = {"region_id": "eu", "name": "Frankfurt"}
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def responses() -> Iterator[RecordedResponses]:
    with RecordedResponses() as responses:
        yield responses


@pytest.fixture
def recorded_key(responses: RecordedResponses) -> None:
    """A new key, from a file. The test is a coroutine, and must not read files itself."""
    responses.add("POST", "/api_keys", DATA / "api-key-personal-created.json")


async def test_recorded_response_is_decoded_to_a_struct(responses: RecordedResponses) -> None:
    responses.add("GET", OPERATION, {"operation": operation_json(status="finished")})
    async with NeonClient(API_KEY) as neon:
        found = await neon.operations.get(PROJECT, "op-1")
    assert (found.id, found.status) == ("op-1", "finished")


async def test_recorded_status_is_raised_as_its_error_class(responses: RecordedResponses) -> None:
    body = {"code": "GONE", "message": "no such operation"}
    responses.add("GET", OPERATION, body, status=404)
    async with NeonClient(API_KEY) as neon:
        with pytest.raises(NotFoundError, match="no such operation") as caught:
            await neon.operations.get(PROJECT, "op-1")
    assert (caught.value.status, caught.value.code) == (404, "GONE")


@pytest.mark.virtual_time
async def test_recorded_transient_failures_are_retried(responses: RecordedResponses) -> None:
    responses.add("GET", OPERATION, status=503, headers={"Retry-After": "7"})
    responses.add("GET", OPERATION, error=ConnectionResetError())
    responses.add("GET", OPERATION, {"operation": operation_json()})
    async with NeonClient(API_KEY, retry=RetryPolicy(initial=0)) as neon:
        await neon.operations.get(PROJECT, "op-1")
        assert neon.requests_sent == 3
    assert now() == pytest.approx(7)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"regions": [FRANKFURT]}, id="plain"),
        pytest.param({"regions": [Region(region_id="eu", name="Frankfurt")]}, id="structs"),
        pytest.param(b'{"regions": [{"region_id": "eu", "name": "Frankfurt"}]}', id="bytes"),
        pytest.param('{"regions": [{"region_id": "eu", "name": "Frankfurt"}]}', id="text"),
    ],
)
async def test_body_can_be_any_kind_of_content(
    responses: RecordedResponses, content: Content
) -> None:
    responses.add("GET", "/regions", content)
    async with NeonClient(API_KEY) as neon:
        assert [region.name for region in await neon.regions.list()] == ["Frankfurt"]


@pytest.mark.usefixtures("recorded_key")
async def test_body_can_be_a_file() -> None:
    async with NeonClient(API_KEY) as neon:
        created = await neon.api_keys.create(key_name="ci")
    assert created.key.reveal() == "neon_api_key_1234567890abcdef1234567890abcdef"


async def test_download_and_form_can_be_recorded(responses: RecordedResponses) -> None:
    bucket, functions = f"{BRANCHES}/br-1/buckets/images", f"{BRANCHES}/br-1/functions"
    responses.add("GET", f"{bucket}/objects/a/cat.png/download", b"meow")
    responses.add("POST", f"{functions}/hello/deployments", {"deployment": DEPLOYMENT})
    async with NeonClient(API_KEY) as neon:
        async with neon.storage.download(PROJECT, "br-1", "images", "a/cat.png") as download:
            assert [part async for part in download] == [b"meow"]
        archive = bytes(range(256)) * 1000
        deployment = await neon.functions.deploy(PROJECT, "br-1", "hello", zip=archive)
    assert deployment.id == 7
    assert [request.body for request in responses.requests] == [None, None]


async def test_secrets_of_a_struct_are_part_of_the_body(responses: RecordedResponses) -> None:
    responses.add("POST", "/api_keys", ApiKeyCreated(id=1, key=Secret("sesame")))
    async with NeonClient(API_KEY) as neon:
        assert (await neon.api_keys.create(key_name="ci")).key.reveal() == "sesame"


async def test_each_poll_returns_the_next_status(responses: RecordedResponses) -> None:
    responses.operation(PROJECT, "op-1", "scheduling", "running", "finished")
    async with NeonClient(API_KEY) as neon:
        statuses = [(await neon.operations.get(PROJECT, "op-1")).status for _ in range(4)]
    assert statuses == ["scheduling", "running", "finished", "finished"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("count", [1, 3])
async def test_wait_finishes_with_its_recorded_operations(
    responses: RecordedResponses, count: int
) -> None:
    for number in range(count):
        responses.operation(PROJECT, f"op-{number}", "running", "running", "finished")
    body = {
        "branch": branch_json(),
        # These records have an old time; the polls return newer records.
        "operations": [operation_json(f"op-{number}") for number in range(count)],
    }
    responses.add("POST", BRANCHES, body, status=201)
    async with NeonClient(API_KEY) as neon:
        created = await neon.branches.create(PROJECT, name="preview", wait=60.0)
        assert neon.requests_sent == 1 + 3
    assert {operation.status for operation in created.operations} == {"finished"}


async def test_list_returns_the_newest_operation_first(responses: RecordedResponses) -> None:
    responses.operation(PROJECT, "older", "finished")
    responses.operation(PROJECT, "newer", "finished", action="start_compute")
    responses.operation("other-project", "unrelated", "finished")
    async with NeonClient(API_KEY) as neon:
        listed = await neon.operations.list(PROJECT).collect()
    assert [(operation.id, operation.action) for operation in listed] == [
        ("newer", "start_compute"),
        ("older", "create_branch"),
    ]


@pytest.mark.virtual_time
async def test_recorded_operation_can_fail(responses: RecordedResponses) -> None:
    responses.operation(PROJECT, "op-1", "running", "failed", error="no room")
    async with NeonClient(API_KEY) as neon:
        with pytest.raises(OperationFailedError, match="no room"):
            await neon.operations.wait(ref("op-1"))


@pytest.mark.virtual_time
async def test_recorded_response_takes_precedence_over_the_operation(
    responses: RecordedResponses,
) -> None:
    responses.operation(PROJECT, "op-1", "finished")
    responses.add("GET", OPERATION, status=503, times=2)
    async with NeonClient(API_KEY) as neon:
        await neon.operations.get(PROJECT, "op-1")
        assert neon.requests_sent == 3


async def test_requests_are_kept_in_order(responses: RecordedResponses) -> None:
    responses.add("POST", BRANCHES, {"branch": branch_json(), "operations": []}, status=201)
    responses.add("GET", BRANCHES, {"branches": []})
    async with NeonClient(API_KEY) as neon:
        await neon.branches.create(PROJECT, name="preview")
        await neon.branches.list(PROJECT, search="pre view").collect()
    create, listing = responses.requests
    assert create == RecordedRequest("POST", BRANCHES, {}, {"branch": {"name": "preview"}})
    assert (listing.method, listing.path, listing.body) == ("GET", BRANCHES, None)
    assert listing.query["search"] == "pre view"


async def test_query_selects_the_response(responses: RecordedResponses) -> None:
    pages: dict[str, Content] = {
        "": {"operations": [operation_json("b")], "pagination": {"cursor": "next"}},
        "?cursor=next": {"operations": [operation_json("a")]},
    }
    for query in ("?cursor=next", ""):
        responses.add("GET", f"/projects/{PROJECT}/operations{query}", pages[query])
    async with NeonClient(API_KEY) as neon:
        listed = await neon.operations.list(PROJECT, limit=1).collect()
    assert [operation.id for operation in listed] == ["b", "a"]


@pytest.mark.parametrize("search", ["a b", "a&b=c", "100%", "%41", "1+1", "ü"])
async def test_query_is_decoded(responses: RecordedResponses, search: str) -> None:
    responses.add("GET", f"/projects?{urlencode({'search': search})}", {"projects": []})
    async with NeonClient(API_KEY) as neon:
        assert await neon.projects.list(search=search).collect() == []
    assert responses.requests[0].query["search"] == search


async def test_response_is_used_as_often_as_recorded(responses: RecordedResponses) -> None:
    responses.add("GET", "/regions", {"regions": []}, times=2)
    responses.add("GET", "/regions", {"regions": [FRANKFURT]}, times=None)
    async with NeonClient(API_KEY) as neon:
        counts = [len(await neon.regions.list()) for _ in range(5)]
    assert counts == [0, 0, 1, 1, 1]


@pytest.mark.virtual_time
async def test_unrecorded_request_raises_at_once_and_lists_the_recordings(
    responses: RecordedResponses,
) -> None:
    responses.add("GET", "/regions", {"regions": []})
    responses.add("GET", f"{BRANCHES}?search=b", {"branches": []})
    responses.operation(PROJECT, "op-1", "running")
    async with NeonClient(API_KEY) as neon:
        await neon.regions.list()
        with pytest.raises(UnrecordedRequestError) as caught:
            await neon.branches.list(PROJECT, search="a", limit=3).collect()
        assert (neon.requests_sent, now()) == (2, 0)
    first, *recorded = str(caught.value).splitlines()
    assert first.startswith(f"no response is recorded for GET {BRANCHES}?")
    assert "search=a" in first
    assert [line.strip() for line in recorded] == [
        "GET /regions (used up)",
        f"GET {BRANCHES}?search=b",
        f"GET {OPERATION}",
    ]


@pytest.mark.virtual_time
async def test_wait_raises_at_once_if_its_poll_is_not_recorded(
    responses: RecordedResponses,
) -> None:
    async with NeonClient(API_KEY) as neon:
        with pytest.raises(UnrecordedRequestError, match="none"):
            await neon.operations.wait(ref("op-1"))
        assert neon.requests_sent == len(responses.requests) == 1


async def test_another_base_url_can_be_recorded() -> None:
    with RecordedResponses("https://neon.example/v9/") as responses:
        responses.add("GET", "/regions", {"regions": [FRANKFURT]})
        async with NeonClient(API_KEY, base_url="https://neon.example/v9") as neon:
            assert len(await neon.regions.list()) == 1
    assert [request.path for request in responses.requests] == ["/regions"]


async def test_requests_to_other_addresses_are_sent(
    responses: RecordedResponses, neon: NeonClient
) -> None:
    assert await neon.regions.list()
    assert responses.requests == []


async def test_default_base_url_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_HOST", "http://127.0.0.1:1/api/v2")
    with RecordedResponses() as responses:
        responses.add("GET", "/regions", {"regions": []})
        async with NeonClient("any-key") as neon:
            assert await neon.regions.list() == []


async def test_default_port_makes_no_difference() -> None:
    with RecordedResponses("https://example.com:443/api/v2/") as responses:
        responses.add("GET", "/regions", {"regions": []})
        for base_url in ("https://example.com/api/v2", "https://example.com:443/api/v2"):
            async with NeonClient("any-key", base_url=base_url) as neon:
                responses.add("GET", "/regions", {"regions": []})
                assert await neon.regions.list() == []


def test_only_one_can_be_active(responses: RecordedResponses) -> None:
    with pytest.raises(RuntimeError, match="is active: exit it first, or add responses to it"):
        RecordedResponses("https://example.com/api/v2").__enter__()
    assert responses.requests == []


def test_invalid_arguments_are_refused() -> None:
    responses = RecordedResponses()
    with pytest.raises(ValueError, match="method is 'FETCH'"):
        responses.add("FETCH", "/regions")
    with pytest.raises(ValueError, match="path is 'regions'"):
        responses.add("GET", "regions")
    with pytest.raises(ValueError, match="times is 0"):
        responses.add("GET", "/regions", times=0)
    with pytest.raises(TypeError, match="cannot encode a value of type object as JSON"):
        responses.add("GET", "/regions", {"regions": object()})
    with pytest.raises(ValueError, match="at least one status"):
        responses.operation(PROJECT, "op-1")


def test_import_without_aioresponses_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aioresponses", None)
    monkeypatch.delitem(sys.modules, "neonctl_async.testing.recorded")
    with pytest.raises(ImportError, match=r"pip install 'neonctl-async\[testing\]'"):
        importlib.import_module("neonctl_async.testing.recorded")
