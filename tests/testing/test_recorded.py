"""A user's tests may record the answers of the client."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from neonctl_async import NeonClient, NotFoundError, OperationFailedError, RetryPolicy, Secret
from neonctl_async.local import LocalControlPlane
from neonctl_async.testing.recorded import (
    Content,
    RecordedRequest,
    RecordedResponses,
    UnrecordedRequestError,
)
from neonctl_async.types import ApiKeyCreated, Region
from tests.support.clock import now
from tests.support.records import API_KEY, PROJECT, branch_json, operation_json, ref

OPERATION = f"/projects/{PROJECT}/operations/op-1"
BRANCHES = f"/projects/{PROJECT}/branches"
FRANKFURT = {"region_id": "eu", "name": "Frankfurt"}
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def answers() -> Iterator[RecordedResponses]:
    with RecordedResponses() as answers:
        yield answers


@pytest.fixture
def recorded_key(answers: RecordedResponses) -> None:
    """A key from a file, which no coroutine has to read."""
    answers.add("POST", "/api_keys", DATA / "api-key-personal-created.json")


async def test_a_recorded_answer_comes_as_a_struct(answers: RecordedResponses) -> None:
    answers.add("GET", OPERATION, {"operation": operation_json(status="finished")})
    async with NeonClient(API_KEY) as neon:
        found = await neon.operations.get(PROJECT, "op-1")
    assert (found.id, found.status) == ("op-1", "finished")


async def test_a_recorded_error_is_raised_as_the_class_of_its_status(
    answers: RecordedResponses,
) -> None:
    told = {"code": "GONE", "message": "no such operation"}
    answers.add("GET", OPERATION, told, status=404)
    async with NeonClient(API_KEY) as neon:
        with pytest.raises(NotFoundError, match="no such operation") as caught:
            await neon.operations.get(PROJECT, "op-1")
    assert (caught.value.status, caught.value.code) == (404, "GONE")


@pytest.mark.virtual_time
async def test_recorded_failures_that_pass_are_tried_again(answers: RecordedResponses) -> None:
    answers.add("GET", OPERATION, status=503, headers={"Retry-After": "7"})
    answers.add("GET", OPERATION, error=ConnectionResetError())
    answers.add("GET", OPERATION, {"operation": operation_json()})
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
async def test_a_body_comes_in_any_form(answers: RecordedResponses, content: Content) -> None:
    answers.add("GET", "/regions", content)
    async with NeonClient(API_KEY) as neon:
        assert [region.name for region in await neon.regions.list()] == ["Frankfurt"]


@pytest.mark.usefixtures("recorded_key")
async def test_a_body_comes_from_a_recorded_file() -> None:
    async with NeonClient(API_KEY) as neon:
        created = await neon.api_keys.create(key_name="ci")
    assert created.key.reveal() == "neon_api_key_1234567890abcdef1234567890abcdef"


async def test_a_struct_is_answered_with_its_secrets(answers: RecordedResponses) -> None:
    answers.add("POST", "/api_keys", ApiKeyCreated(id=1, key=Secret("sesame")))
    async with NeonClient(API_KEY) as neon:
        assert (await neon.api_keys.create(key_name="ci")).key.reveal() == "sesame"


async def test_an_operation_goes_on_with_every_look_at_it(answers: RecordedResponses) -> None:
    answers.operation(PROJECT, "op-1", "scheduling", "running", "finished")
    async with NeonClient(API_KEY) as neon:
        seen = [(await neon.operations.get(PROJECT, "op-1")).status for _ in range(4)]
    assert seen == ["scheduling", "running", "finished", "finished"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("count", [1, 3])
async def test_a_wait_ends_once_its_operations_have(answers: RecordedResponses, count: int) -> None:
    for number in range(count):
        answers.operation(PROJECT, f"op-{number}", "running", "running", "finished")
    begun = {
        "branch": branch_json(),
        # Recorded whenever: what is found later is newer all the same.
        "operations": [operation_json(f"op-{number}") for number in range(count)],
    }
    answers.add("POST", BRANCHES, begun, status=201)
    async with NeonClient(API_KEY) as neon:
        created = await neon.branches.create(PROJECT, name="preview", wait=60.0)
        assert neon.requests_sent == 1 + 3
    assert {operation.status for operation in created.operations} == {"finished"}


async def test_a_project_lists_its_operations_newest_first(answers: RecordedResponses) -> None:
    answers.operation(PROJECT, "older", "finished")
    answers.operation(PROJECT, "newer", "finished", action="start_compute")
    answers.operation("other", "elsewhere", "finished")
    async with NeonClient(API_KEY) as neon:
        listed = await neon.operations.list(PROJECT).collect()
    assert [(one.id, one.action) for one in listed] == [
        ("newer", "start_compute"),
        ("older", "create_branch"),
    ]


@pytest.mark.virtual_time
async def test_an_operation_may_fail(answers: RecordedResponses) -> None:
    answers.operation(PROJECT, "op-1", "running", "failed", error="no room")
    async with NeonClient(API_KEY) as neon:
        with pytest.raises(OperationFailedError, match="no room"):
            await neon.operations.wait(ref("op-1"))


@pytest.mark.virtual_time
async def test_an_answer_to_a_look_comes_before_the_operation(answers: RecordedResponses) -> None:
    answers.operation(PROJECT, "op-1", "finished")
    answers.add("GET", OPERATION, status=503, times=2)
    async with NeonClient(API_KEY) as neon:
        await neon.operations.wait(ref("op-1"))
        assert neon.requests_sent == 3


async def test_what_was_asked_is_kept_in_order(answers: RecordedResponses) -> None:
    answers.add("POST", BRANCHES, {"branch": branch_json(), "operations": []}, status=201)
    answers.add("GET", BRANCHES, {"branches": []})
    async with NeonClient(API_KEY) as neon:
        await neon.branches.create(PROJECT, name="preview")
        await neon.branches.list(PROJECT, search="pre view").collect()
    create, listing = answers.requests
    assert create == RecordedRequest("POST", BRANCHES, {}, {"branch": {"name": "preview"}})
    assert (listing.method, listing.path, listing.body) == ("GET", BRANCHES, None)
    assert listing.query["search"] == "pre view"


async def test_the_query_chooses_the_answer(answers: RecordedResponses) -> None:
    pages: dict[str, Content] = {
        "": {"operations": [operation_json("b")], "pagination": {"cursor": "next"}},
        "?cursor=next": {"operations": [operation_json("a")]},
    }
    for query in ("?cursor=next", ""):
        answers.add("GET", f"/projects/{PROJECT}/operations{query}", pages[query])
    async with NeonClient(API_KEY) as neon:
        listed = await neon.operations.list(PROJECT, limit=1).collect()
    assert [one.id for one in listed] == ["b", "a"]


@pytest.mark.parametrize("search", ["a b", "a&b=c", "100%", "%41", "1+1", "ü"])
async def test_a_query_is_told_as_it_was_meant(answers: RecordedResponses, search: str) -> None:
    answers.add("GET", f"/projects?{urlencode({'search': search})}", {"projects": []})
    async with NeonClient(API_KEY) as neon:
        assert await neon.projects.list(search=search).collect() == []
    assert answers.requests[0].query["search"] == search


async def test_an_answer_is_given_as_often_as_told(answers: RecordedResponses) -> None:
    answers.add("GET", "/regions", {"regions": []}, times=2)
    answers.add("GET", "/regions", {"regions": [FRANKFURT]}, times=None)
    async with NeonClient(API_KEY) as neon:
        counts = [len(await neon.regions.list()) for _ in range(5)]
    assert counts == [0, 0, 1, 1, 1]


@pytest.mark.virtual_time
async def test_what_has_no_answer_fails_at_once_and_says_what_there_is(
    answers: RecordedResponses,
) -> None:
    answers.add("GET", "/regions", {"regions": []})
    answers.add("GET", f"{BRANCHES}?search=b", {"branches": []})
    answers.operation(PROJECT, "op-1", "running")
    async with NeonClient(API_KEY) as neon:
        await neon.regions.list()
        with pytest.raises(UnrecordedRequestError) as caught:
            await neon.branches.list(PROJECT, search="a", limit=3).collect()
        assert (neon.requests_sent, now()) == (2, 0)
    first, *recorded = str(caught.value).splitlines()
    assert first.startswith(f"no answer is recorded to GET {BRANCHES}?")
    assert "search=a" in first
    assert [line.strip() for line in recorded] == [
        "GET /regions (given already)",
        f"GET {BRANCHES}?search=b",
        f"GET {OPERATION}",
    ]


@pytest.mark.virtual_time
async def test_a_wait_for_what_has_no_answer_ends_at_once(answers: RecordedResponses) -> None:
    async with NeonClient(API_KEY) as neon:
        with pytest.raises(UnrecordedRequestError, match="none"):
            await neon.operations.wait(ref("op-1"))
        assert neon.requests_sent == len(answers.requests) == 1


async def test_another_address_is_answered_too_if_it_is_named() -> None:
    with RecordedResponses("https://neon.example/v9/") as answers:
        answers.add("GET", "/regions", {"regions": [FRANKFURT]})
        async with NeonClient(API_KEY, base_url="https://neon.example/v9") as neon:
            assert len(await neon.regions.list()) == 1
    assert [request.path for request in answers.requests] == ["/regions"]


async def test_what_is_asked_elsewhere_goes_there(answers: RecordedResponses) -> None:
    async with LocalControlPlane() as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            assert await neon.regions.list()
    assert answers.requests == []


async def test_they_are_for_the_address_that_the_environment_names_to_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NEON_API_HOST", "http://127.0.0.1:1/api/v2")
    with RecordedResponses() as answers:
        answers.add("GET", "/regions", {"regions": []})
        async with NeonClient("any-key") as neon:
            assert await neon.regions.list() == []


async def test_a_port_that_goes_without_saying_makes_no_difference() -> None:
    with RecordedResponses("https://example.com:443/api/v2/") as answers:
        answers.add("GET", "/regions", {"regions": []})
        for base_url in ("https://example.com/api/v2", "https://example.com:443/api/v2"):
            async with NeonClient("any-key", base_url=base_url) as neon:
                answers.add("GET", "/regions", {"regions": []})
                assert await neon.regions.list() == []


def test_there_is_one_at_a_time(answers: RecordedResponses) -> None:
    with pytest.raises(RuntimeError, match="entered already: leave it first, or add to it"):
        RecordedResponses("https://example.com/api/v2").__enter__()
    assert answers.requests == []


def test_what_could_never_be_asked_is_refused() -> None:
    answers = RecordedResponses()
    with pytest.raises(ValueError, match="method is 'FETCH'"):
        answers.add("FETCH", "/regions")
    with pytest.raises(ValueError, match="path is 'regions'"):
        answers.add("GET", "regions")
    with pytest.raises(ValueError, match="times is 0"):
        answers.add("GET", "/regions", times=0)
    with pytest.raises(TypeError, match="a object has no form in JSON"):
        answers.add("GET", "/regions", {"regions": object()})
    with pytest.raises(ValueError, match="one status"):
        answers.operation(PROJECT, "op-1")


def test_without_aioresponses_the_import_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aioresponses", None)
    monkeypatch.delitem(sys.modules, "neonctl_async.testing.recorded")
    with pytest.raises(ImportError, match=r"install neonctl-async\[testing\]"):
        importlib.import_module("neonctl_async.testing.recorded")
