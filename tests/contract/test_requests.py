"""What the methods send is what is published: nothing else, and all of it."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.contract.arguments import every_argument, may_be_null
from tests.contract.calls import Call, Watched, watched
from tests.contract.description import Description, Endpoint
from tests.contract.known import NOT_SENT, RENAMED
from tests.contract.methods import Method
from tests.contract.paths import body_properties, values_sent

pytestmark = pytest.mark.contract


@pytest.fixture
async def client(prism: str) -> AsyncIterator[Watched]:
    async with watched(prism) as client:
        yield client


def test_a_call_with_every_parameter_violates_nothing(call: Call) -> None:
    assert call.exchange.violations == [], f"{call.method} calls {call.exchange}"


def test_ids_stand_where_the_path_names_them(call: Call, endpoint: Endpoint) -> None:
    values = endpoint.values_in(call.exchange.path)
    given = {name: str(call.arguments.get(name)) for name in values or {}}
    assert values == given, f"{call.method} calls {call.exchange}, which is {endpoint}"


def test_nothing_is_sent_that_is_not_published(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    published = {*endpoint.query, *body_properties(description, endpoint)}
    maps = tuple(
        f"{path}."
        for path, schema in body_properties(description, endpoint).items()
        if schema.values
    )
    unknown = [
        path
        for path in values_sent(call.exchange)
        if path not in published and not path.startswith(maps or "\n")
    ]
    assert unknown == [], f"{call.method} sends what {endpoint} does not take"


def test_all_that_is_published_can_be_sent(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    wanted = {name for name, one in endpoint.query.items() if not one.deprecated}
    properties = body_properties(description, endpoint)
    deprecated = tuple(path for path, schema in properties.items() if schema.deprecated)
    wanted |= {
        path
        for path, schema in properties.items()
        if not schema.properties and not path.startswith(deprecated or "\n")
    }
    sent = {
        path.removesuffix(".key")  # the one entry of what is a map
        for path in values_sent(call.exchange)
    }
    missing = wanted - sent - {"cursor"} - NOT_SENT.get(str(call.method), {}).keys()
    assert missing == set(), f"{call.method} has no parameter for what {endpoint} takes"


async def test_what_is_not_given_is_not_sent(method: Method, client: Watched) -> None:
    arguments = every_argument(method)
    given = {name: arguments[name] for name in method.required}
    alone = await client.observe(method, given)
    assert alone.exchange.violations == [], f"{method} calls {alone.exchange}"
    told = [str(value) for value in values_sent(alone.exchange).values()]
    sources = msgspec.json.encode(given).decode() + str(given)
    surplus = [value for value in told if value not in sources]
    assert surplus == [], f"{method} sends what was not given: {values_sent(alone.exchange)}"


async def test_a_keyword_is_sent_under_its_own_name(method: Method, client: Watched) -> None:
    arguments = every_argument(method)
    required = {name: arguments[name] for name in method.required}
    without = values_sent((await client.observe(method, required)).exchange)
    for name in method.parameters.keys() - required.keys():
        call = await client.observe(method, {**required, name: arguments[name]})
        assert call.exchange.violations == [], f"{method} with {name} alone"
        added = values_sent(call.exchange).keys() - without.keys()
        published = RENAMED.get(f"{method}.{name}", name)
        strangers = [path for path in added if published not in path.split(".")]
        assert added, f"{method} with {name} sends no more than without"
        assert strangers == [], f"{method} sends {name} under other names"


async def test_none_is_taken_where_the_api_takes_null(
    call: Call, endpoint: Endpoint, description: Description, client: Watched
) -> None:
    nulls: set[str] = set()
    for name in may_be_null(call.method):
        sent = await client.observe(call.method, {**call.arguments, name: None})
        assert sent.exchange.violations == [], f"{call.method} with {name}=None"
        found = {path for path, value in values_sent(sent.exchange).items() if value is None}
        assert found, f"{call.method} with {name}=None sends no null"
        nulls |= found
    nullable = {
        path for path, schema in body_properties(description, endpoint).items() if schema.nullable
    }
    assert nulls == nullable, f"{call.method} and {endpoint} differ in what may be null"


def test_listings_with_a_cursor_are_paginated(call: Call, endpoint: Endpoint) -> None:
    returned = str(call.method.hints["return"])
    assert ("Paginator" in returned) == ("cursor" in endpoint.query), (
        f"{call.method} and {endpoint} differ in whether there are pages"
    )
