"""The requests of all methods agree with the published description."""

from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest
from msgspec import UNSET

from neonctl_async import types
from neonctl_async.models.base import OpenEnum
from tests.contract.calls import Call, RecordedClient, recorded_client
from tests.contract.description import Description, Endpoint
from tests.contract.known import LARGEST_PAGES, NOT_SENT, RENAMED, REQUIRED_TOGETHER
from tests.contract.paths import body_properties, scalars, sent_items, sent_values
from tests.contract.problems import assert_none
from tests.support.arguments import choices, every_argument, may_be_null
from tests.support.methods import Method

pytestmark = pytest.mark.contract

ENUMERATIONS: Mapping[str, set[object]] = {
    name: {member.value for member in kind}
    for name in types.__all__
    if isinstance(kind := getattr(types, name), type) and issubclass(kind, OpenEnum)
}
"""The members of each enumeration, by its name."""


@pytest.fixture
async def client(prism: str) -> AsyncIterator[RecordedClient]:
    async with recorded_client(prism) as client:
        yield client


def test_call_with_every_parameter_has_no_violations(call: Call) -> None:
    assert_none(f"{call.method} calls {call.exchange}", call.exchange.violations)


def test_ids_are_in_their_place_in_the_path(call: Call, endpoint: Endpoint) -> None:
    assert_none(
        f"{call.method} calls {endpoint}",
        (
            f"{{{name}}} is {value}, not the argument {name}"
            for name, value in endpoint.ids_in(call.exchange.path).items()
            if value != str(call.arguments.get(name))
        ),
    )


def test_only_published_names_are_sent(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    properties = body_properties(description, endpoint)
    published = {*endpoint.query, *properties}
    maps = tuple(f"{path}." for path, schema in properties.items() if schema.values)
    assert_none(
        f"{call.method} calls {endpoint}",
        (
            f"{path} is sent, but not published"
            for path in sent_values(call.exchange)
            if path not in published and not path.startswith(maps)
        ),
    )


def test_every_published_name_can_be_sent(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    expected = {name for name, parameter in endpoint.query.items() if not parameter.deprecated} - {
        "cursor"
    }
    properties = body_properties(description, endpoint)
    deprecated = tuple(path for path, schema in properties.items() if schema.deprecated)
    expected |= {
        path
        for path, schema in properties.items()
        if not schema.properties and not path.startswith(deprecated)
    }
    # A map is sent with one entry, whose name is not part of the contract.
    sent = {path.removesuffix(".key") for path in sent_values(call.exchange)}
    assert_none(
        f"{call.method} calls {endpoint}",
        (
            f"no parameter sends {path}: add a keyword, or an entry with a reason to NOT_SENT"
            for path in expected - sent
            if f"{endpoint}: {path}" not in NOT_SENT
        ),
    )


async def test_omitted_arguments_are_not_sent(method: Method, client: RecordedClient) -> None:
    subject = f"{method} with required arguments only"
    required = required_arguments(method)
    call = await client.call(method, required)
    assert_none(subject, call.exchange.violations)
    sent = set(scalars([value for _, value in sent_items(call.exchange)]))
    defaults = [parameter.default for parameter in method.parameters.values()]
    surplus = sent - set(scalars(msgspec.to_builtins(required))) - {*defaults}
    assert_none(subject, (f"{value!r} is sent, but is not an argument" for value in surplus))


def test_each_argument_is_sent_under_its_name(call: Call, endpoint: Endpoint) -> None:
    sent = sent_items(call.exchange)
    for name in call.arguments.keys() - endpoint.ids_in(call.exchange.path).keys():
        published = published_name(call.method, name)
        found = [value for path, value in sent if path.rpartition(".")[2] == published]
        argument = scalars(msgspec.to_builtins(call.arguments[name]))
        assert_none(
            f"{call.method} calls {endpoint}",
            [] if argument in map(scalars, [*found, found]) else [f"{name} is sent as {found}"],
        )


async def test_each_keyword_can_be_sent_alone(method: Method, client: RecordedClient) -> None:
    arguments, required = every_argument(method), required_arguments(method)
    without = sent_values((await client.call(method, required)).exchange)
    optional = [name for name, item in method.parameters.items() if item.default is UNSET]
    for name in {*optional} - required.keys():
        call = await client.call(method, {**required, name: arguments[name]})
        subject = f"{method} with {name} alone"
        assert_none(subject, call.exchange.violations)
        added = sent_values(call.exchange).keys() - without.keys()
        assert_none(subject, [] if added else ["the request is the same without it"])
        published = published_name(method, name)
        assert_none(
            subject, (f"{path} is sent" for path in added if published not in path.split("."))
        )


def test_choices_are_the_published_ones(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    published = published_choices(description, endpoint)
    assert_none(
        f"{call.method} calls {endpoint}",
        (
            f"{name}: {value} is not published: remove it from the Literal"
            if value in values
            else f"{name}: {value} is missing: add it to the Literal"
            for name, values in choices(call.method).items()
            # Without an enumeration, the description lists the choices in its text only.
            for value in values ^ published.get(published_name(call.method, name), values)
        ),
    )


def test_enumerations_have_every_published_choice(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    literals = {published_name(call.method, name) for name in choices(call.method)}
    assert_none(
        f"{call.method} calls {endpoint}",
        (
            f"{path}: {value} is missing: add it to {name}"
            for path, values in published_choices(description, endpoint).items()
            if path not in literals
            for name, members in [nearest_enumeration(values)]
            for value in values - members
        ),
    )


def published_choices(description: Description, endpoint: Endpoint) -> dict[str, set[object]]:
    """Return the published values of each parameter and property that is an enumeration."""
    parameters = {name: parameter.schema for name, parameter in endpoint.query.items()}
    found: dict[str, set[object]] = {}
    for path, schema in (parameters | body_properties(description, endpoint)).items():
        resolved = description.resolve(schema)
        values = description.resolve(resolved.items).enum if resolved.items else resolved.enum
        if values:
            found[path] = set(values)
    return found


def nearest_enumeration(values: set[object]) -> tuple[str, set[object]]:
    """Return the name and the members of the enumeration that has most of the values."""
    name, members = max(ENUMERATIONS.items(), key=lambda item: len(values & item[1]))
    return (name, members) if values & members else ("a new enumeration in types.py", set())


async def test_parameters_accept_none_if_the_api_accepts_null(
    call: Call, endpoint: Endpoint, description: Description, client: RecordedClient
) -> None:
    nulls: set[str] = set()
    for name in may_be_null(call.method):
        sent = await client.call(call.method, {**call.arguments, name: None})
        subject = f"{call.method} with {name}=None"
        assert_none(subject, sent.exchange.violations)
        found = {path for path, value in sent_values(sent.exchange).items() if value is None}
        assert_none(subject, [] if found else ["no null is sent"])
        nulls |= found
    properties = body_properties(description, endpoint)
    nullable = {path for path, schema in properties.items() if schema.nullable}
    assert_none(
        f"{call.method} calls {endpoint}",
        [f"{path} may be null, but no parameter accepts None" for path in nullable - nulls]
        + [f"{path} may not be null" for path in nulls - nullable],
    )


def test_only_lists_with_a_cursor_are_paginated(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    published = {*endpoint.query, *body_properties(description, endpoint)}
    if call.method.is_paginated == ("cursor" in published):
        return
    problem = "not published: return a list" if call.method.is_paginated else "published: paginate"
    pytest.fail(f"{call.method} calls {endpoint}: a cursor is {problem}", pytrace=False)


def test_every_known_difference_exists(
    calls: Mapping[Method, Call | Exception], description: Description
) -> None:
    sent = {
        f"{description.endpoint_of(call.exchange.method, call.exchange.path)}: {path}"
        for call in calls.values()
        if isinstance(call, Call)
        for path in sent_values(call.exchange)
    }
    assert_none("entries of NOT_SENT that are sent", NOT_SENT.keys() & sent)
    parameters = {f"{method}.{name}" for method in calls for name in method.parameters}
    assert_none("entries of RENAMED that are no parameters", RENAMED.keys() - parameters)


def required_arguments(method: Method) -> dict[str, object]:
    """Return the arguments without which the API rejects the request."""
    names = [*method.required, *filter(None, [REQUIRED_TOGETHER.get(str(method))])]
    arguments = every_argument(method)
    return {name: arguments[name] for name in names}


def published_name(method: Method, name: str) -> str:
    """Return the published name of a parameter. A Python keyword has an underscore appended."""
    return RENAMED.get(f"{method}.{name}", name.removesuffix("_"))


async def test_page_size_has_the_published_maximum(
    method: Method, endpoint: Endpoint, description: Description, client: RecordedClient
) -> None:
    if not method.is_paginated:
        return
    if str(method) in LARGEST_PAGES:
        largest: float | None = LARGEST_PAGES[str(method)]
    else:
        largest = description.resolve(endpoint.query["limit"].schema).maximum
        assert largest, f"{endpoint}: no maximum of limit is published"
    if largest is None:
        return
    arguments = every_argument(method)
    await client.call(method, {**arguments, "limit": int(largest)})
    with pytest.raises(ValueError, match="limit is "):
        await method.call(client.neon, {**arguments, "limit": int(largest) + 1})
