"""Records by their exact names."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from neonctl_async import LookupFailedError, NeonClient
from neonctl_async.resources.names import Wanted
from neonctl_async.types import EndpointSpec, Project
from tests.models.records import BRANCH, ENDPOINT, PROJECT, SNAPSHOT, JsonObject, decode
from tests.resources.wire import responding_in_sequence, responding_with

Find = Callable[[NeonClient, str], Awaitable[Any]]

KINDS: list[tuple[str, str, JsonObject, Find]] = [
    ("branch", "branches", BRANCH, lambda neon, name: neon.branches.find("p-1", name)),
    ("project", "projects", PROJECT, lambda neon, name: neon.projects.find(name)),
    ("compute", "endpoints", ENDPOINT, lambda neon, name: neon.endpoints.find("p-1", name)),
    ("snapshot", "snapshots", SNAPSHOT, lambda neon, name: neon.snapshots.find("p-1", name)),
]
BY_KIND = pytest.mark.parametrize(("kind", "field", "record", "find"), KINDS)


def named(record: JsonObject, **names: str) -> list[JsonObject]:
    return [{**record, "id": id, "name": name} for id, name in names.items()]


@BY_KIND
async def test_exact_name_is_found_with_one_request(
    kind: str, field: str, record: JsonObject, find: Find
) -> None:
    records = named(record, one="my main", two="main", three="main-2", four="Main")
    async with responding_with({field: records}) as exchange:
        found = await find(exchange.neon, "main")
    assert (found.id, found.name) == ("two", "main")
    assert len(exchange.all_sent) == 1
    assert kind in {"compute", "snapshot"} or exchange.sent.query["search"] == "main"


@BY_KIND
async def test_unknown_name_is_an_error_with_the_existing_names(
    kind: str, field: str, record: JsonObject, find: Find
) -> None:
    async with responding_with({field: named(record, one="staging", two="production")}) as exchange:
        with pytest.raises(LookupFailedError) as caught:
            await find(exchange.neon, "stagging")
    assert isinstance(caught.value, LookupError)
    scope = "the API key's account" if kind == "project" else "project p-1"
    kinds = "branches" if kind == "branch" else f"{kind}s"
    assert str(caught.value) == (
        f"no {kind} of {scope} has the name 'stagging'; its {kinds}: production, staging"
    )


@pytest.mark.parametrize(("kind", "field", "record", "find"), KINDS[1:])
async def test_name_of_two_records_is_an_error_with_their_ids(
    kind: str, field: str, record: JsonObject, find: Find
) -> None:
    async with responding_with({field: named(record, one="twin", two="twin")}) as exchange:
        with pytest.raises(ValueError, match=rf"2 {kind}s of .* are named 'twin'.*: one, two$"):
            await find(exchange.neon, "twin")


@BY_KIND
@pytest.mark.parametrize(("name", "error"), [("", ValueError), (7, TypeError)])
async def test_invalid_name_is_rejected_before_a_request(
    kind: str, field: str, record: JsonObject, find: Find, name: Any, error: type[Exception]
) -> None:
    del kind, record
    async with responding_with({field: []}) as exchange:
        with pytest.raises(error, match=r"^name is "):
            await find(exchange.neon, name)
    assert exchange.all_sent == []


async def test_branch_ends_the_search_even_if_there_may_be_another_page() -> None:
    content = {"branches": named(BRANCH, one="main"), "pagination": {"next": "more"}}
    async with responding_with(content) as exchange:
        assert (await exchange.neon.branches.find("p-1", "main")).id == "one"
    assert exchange.sent.query == {"limit": "10000", "search": "main"}


async def test_project_is_searched_within_an_organization() -> None:
    async with responding_with({"projects": []}) as exchange:
        with pytest.raises(LookupError, match=r"^no project of organization org-1 has"):
            await exchange.neon.projects.find("a", org_id="org-1")
    assert [sent.query.get("org_id") for sent in exchange.all_sent] == ["org-1", "org-1"]


async def test_project_that_the_list_lacks_is_read_by_id() -> None:
    lacking = {"projects": named(PROJECT, one="shop-2"), "unavailable_project_ids": ["two"]}
    [two] = named(PROJECT, two="shop")
    async with responding_in_sequence(lacking, {"project": two}) as exchange:
        assert (await exchange.neon.projects.find("shop")).id == "two"
        assert exchange.all_sent[1].path.endswith("/projects/two")


async def test_names_are_found_on_the_local_control_plane(
    neon: NeonClient, project_id: str
) -> None:
    project = await neon.projects.get(project_id)
    assert (await neon.projects.find(project.name)).id == project_id
    compute = EndpointSpec(type="read_write")
    created = await neon.branches.create(project_id, name="it's/50% ü", endpoints=[compute])
    assert (await neon.branches.find(project_id, "it's/50% ü")).id == created.branch.id
    for name in ("it's", "it's/50% ü ", created.branch.id):
        with pytest.raises(LookupError):
            await neon.branches.find(project_id, name)


def test_long_lists_are_shown_in_part() -> None:
    wanted = Wanted("project", "organization org-1", "twin")
    twins = named(PROJECT, **{str(number): "twin" for number in range(22)})
    with pytest.raises(ValueError, match=r"22 projects .*: 0, 1, .*, 19, …$"):
        wanted.only([decode(Project, twin) for twin in twins])
    others = named(PROJECT, **{str(number): f"twin{number}" for number in range(22)})
    assert wanted.missing([decode(Project, other) for other in others]).count("twin") == 4
