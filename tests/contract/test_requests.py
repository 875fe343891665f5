"""What the methods send is what is published: nothing else, and all of it."""

from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from tests.contract.calls import Call, Watched, watched
from tests.contract.description import Description, Endpoint
from tests.contract.known import NOT_SENT, RENAMED
from tests.contract.paths import all_sent, body_properties, scalars, values_sent
from tests.contract.verdict import agrees
from tests.support.arguments import choices, every_argument, may_be_null
from tests.support.methods import Method

pytestmark = pytest.mark.contract


@pytest.fixture
async def client(prism: str) -> AsyncIterator[Watched]:
    async with watched(prism) as client:
        yield client


def test_a_call_with_every_parameter_violates_nothing(call: Call) -> None:
    agrees(f"{call.method} calls {call.exchange}", call.exchange.violations)


def test_ids_stand_where_the_path_names_them(call: Call, endpoint: Endpoint) -> None:
    agrees(
        f"{call.method} calls {endpoint}",
        (
            f"{{{name}}} is {value}, not the {name} that was given"
            for name, value in endpoint.ids_in(call.exchange.path).items()
            if value != str(call.arguments.get(name))
        ),
    )


def test_nothing_is_sent_that_is_not_published(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    properties = body_properties(description, endpoint)
    published = {*endpoint.query, *properties}
    maps = tuple(f"{path}." for path, schema in properties.items() if schema.values)
    agrees(
        f"{call.method} calls {endpoint}",
        (
            f"{path} is sent, which is not published"
            for path in values_sent(call.exchange)
            if path not in published and not path.startswith(maps)
        ),
    )


def test_all_that_is_published_can_be_sent(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    wanted = {name for name, one in endpoint.query.items() if not one.deprecated} - {"cursor"}
    properties = body_properties(description, endpoint)
    deprecated = tuple(path for path, schema in properties.items() if schema.deprecated)
    wanted |= {
        path
        for path, schema in properties.items()
        if not schema.properties and not path.startswith(deprecated)
    }
    # A map is sent with one entry, whose name is no part of the contract.
    sent = {path.removesuffix(".key") for path in values_sent(call.exchange)}
    agrees(
        f"{call.method} calls {endpoint}",
        (
            f"no parameter sends {path}"
            for path in wanted - sent
            if f"{endpoint}: {path}" not in NOT_SENT
        ),
    )


async def test_what_is_not_given_is_not_sent(method: Method, client: Watched) -> None:
    arguments = every_argument(method)
    given = {name: arguments[name] for name in method.required}
    alone = await client.observe(method, given)
    agrees(f"{method} with no more than it requires", alone.exchange.violations)
    surplus = set(scalars([value for _, value in all_sent(alone.exchange)]))
    surplus -= set(scalars(msgspec.to_builtins(given)))
    agrees(
        f"{method} with no more than it requires",
        (f"{value!r} is sent, which was not given" for value in surplus),
    )


def test_what_is_given_is_sent_under_its_name(call: Call, endpoint: Endpoint) -> None:
    sent = all_sent(call.exchange)
    for name in call.arguments.keys() - endpoint.ids_in(call.exchange.path).keys():
        published = published_name(call.method, name)
        found = [value for path, value in sent if path.rpartition(".")[2] == published]
        given = scalars(msgspec.to_builtins(call.arguments[name]))
        agrees(
            f"{call.method} calls {endpoint}",
            [] if given in map(scalars, [*found, found]) else [f"{name} is sent as {found}"],
        )


async def test_each_keyword_is_sent_when_given_alone(method: Method, client: Watched) -> None:
    arguments = every_argument(method)
    required = {name: arguments[name] for name in method.required}
    without = values_sent((await client.observe(method, required)).exchange)
    for name in method.parameters.keys() - required.keys():
        call = await client.observe(method, {**required, name: arguments[name]})
        about = f"{method} with {name} alone"
        agrees(about, call.exchange.violations)
        added = values_sent(call.exchange).keys() - without.keys()
        agrees(about, [] if added else ["no more is sent than without"])
        published = published_name(method, name)
        agrees(about, (f"{path} is sent" for path in added if published not in path.split(".")))


def test_choices_are_those_that_are_published(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    parameters = {name: one.schema for name, one in endpoint.query.items()}
    published = parameters | body_properties(description, endpoint)
    for name, values in choices(call.method).items():
        wanted = set(description.whole(published[published_name(call.method, name)]).enum)
        if wanted:  # else what it takes is told in words
            told = (f"{name} takes {value}, or lacks it" for value in values ^ wanted)
            agrees(f"{call.method} calls {endpoint}", told)


async def test_none_is_taken_where_the_api_takes_null(
    call: Call, endpoint: Endpoint, description: Description, client: Watched
) -> None:
    nulls: set[str] = set()
    for name in may_be_null(call.method):
        sent = await client.observe(call.method, {**call.arguments, name: None})
        agrees(f"{call.method} with {name}=None", sent.exchange.violations)
        found = {path for path, value in values_sent(sent.exchange).items() if value is None}
        agrees(f"{call.method} with {name}=None", [] if found else ["no null is sent"])
        nulls |= found
    properties = body_properties(description, endpoint)
    nullable = {path for path, schema in properties.items() if schema.nullable}
    agrees(
        f"{call.method} calls {endpoint}",
        [f"{path} may be null, and no parameter takes None for it" for path in nullable - nulls]
        + [f"{path} may not be null" for path in nulls - nullable],
    )


def test_listings_with_a_cursor_are_paginated(call: Call, endpoint: Endpoint) -> None:
    published = "cursor" in endpoint.query
    agrees(
        f"{call.method} calls {endpoint}",
        ["returns a Paginator just where a cursor is published"]
        if call.method.is_paginated != published
        else [],
    )


def test_known_differences_are_none_of_the_past(
    calls: Mapping[Method, Call | Exception], description: Description
) -> None:
    sent = {
        f"{description.endpoint_of(call.exchange.method, call.exchange.path)}: {path}"
        for call in calls.values()
        if isinstance(call, Call)
        for path in values_sent(call.exchange)
    }
    agrees("NOT_SENT names what is sent", NOT_SENT.keys() & sent)
    taken = {f"{method}.{name}" for method in calls for name in method.parameters}
    agrees("RENAMED names what is no parameter", RENAMED.keys() - taken)


def published_name(method: Method, name: str) -> str:
    """A parameter's own name, which ends in an underscore where Python has the word for itself."""
    return RENAMED.get(f"{method}.{name}", name.removesuffix("_"))


async def test_pages_are_as_large_as_published_and_no_larger(
    method: Method, endpoint: Endpoint, description: Description, client: Watched
) -> None:
    if not method.is_paginated:
        return
    largest = description.whole(endpoint.query["limit"].schema).maximum
    assert largest, f"{endpoint}: no maximum of limit is published"
    arguments = every_argument(method)
    await client.observe(method, {**arguments, "limit": int(largest)})
    with pytest.raises(ValueError, match="limit is "):
        await method.call(client.neon, {**arguments, "limit": int(largest) + 1})
