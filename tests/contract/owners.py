"""Finds the method, Struct or enumeration of the library that has a part of an endpoint."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec
from aiohttp import web

from tests.contract.calls import Call, call_every_method
from tests.contract.changes import Part
from tests.contract.description import Description
from tests.support.methods import Method


class Owners:
    """The methods of a client, by the endpoints that they call."""

    def __init__(self, description: Description, calls: Iterable[Call | Exception]) -> None:
        self._calls = {
            str(description.endpoint_of(call.exchange.method, call.exchange.path)): call
            for call in calls
            if isinstance(call, Call)
        }

    @classmethod
    def of_client(cls, description: Description) -> "Owners":
        """Call every method, on a local server. The calls are the same for each description."""
        return cls(description, _calls())

    def method(self, endpoint: str) -> str:
        """Return the method that calls an endpoint, or the endpoint itself if there is none."""
        call = self._calls.get(endpoint)
        return f"neon.{call.method}" if call else endpoint

    def owner(self, endpoint: str, part: Part) -> str:
        """Return the class that has a field or a member, or the method if there is no class."""
        call = self._calls.get(endpoint)
        names = part.name.split(".")
        root: Any = None
        if call and part.kind == "response field":
            root = call.response_type
        elif call and part.kind == "body field":
            hints = call.method.hints
            names = names[next((at for at, name in enumerate(names) if name in hints), 0) :]
            root = hints.get(names[0])
            names = names[1:]
        elif call and part.kind == "parameter":
            root = call.method.hints.get(part.name)
            names = []
        found = _member_class(root, names) if part.value else _struct_with(root, names)
        return found or self.method(endpoint)


def _struct_with(kind: Any, names: list[str]) -> str | None:
    """Return the name of the Struct whose field is the last of ``names``."""
    if not names:
        return None
    inner = _walk(kind, names[:-1])
    struct = next(_classes(inner, msgspec.Struct), None)
    return f"{struct.__name__}.{names[-1]}" if struct else None


def _member_class(kind: Any, names: list[str]) -> str | None:
    enumeration = next(_classes(_walk(kind, names), Enum), None)
    return enumeration.__name__ if enumeration else None


def _walk(kind: Any, names: list[str]) -> Any:
    """Return the type that a path of fields leads to, or None."""
    for name in names:
        struct = next(_classes(kind, msgspec.Struct), None)
        if name == "*" or struct is None:
            continue
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
        kind = get_type_hints(struct).get(fields.get(name, ""))
    return kind


def _classes(kind: Any, base: type) -> Iterator[type]:
    """Yield the subclasses of ``base`` in a type: the members of unions, the items of lists."""
    for argument in get_args(kind):
        yield from _classes(argument, base)
    if isinstance(kind, type) and issubclass(kind, base):
        yield kind


@cache
def _calls() -> list[Call | Exception]:
    return list(asyncio.run(_call_every_method()).values())


async def _call_every_method() -> Mapping[Method, Call | Exception]:
    """Call every method on a server that rejects all requests."""

    async def reject(_: web.Request) -> web.Response:
        return web.json_response({}, status=400)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", reject)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        return await call_every_method(f"http://{host}:{port}")
    finally:
        await runner.cleanup()
