"""Finds the methods of the resources by reflection."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, NamedTuple, Unpack, get_args, get_origin, get_type_hints, is_typeddict

from msgspec import UNSET, Struct

from neonctl_async import NeonClient, WaitOptions
from neonctl_async.client import RESOURCES
from neonctl_async.models.base import OpenEnum
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource

CONVENIENCES: Mapping[str, str] = {
    "branches.connection_uri": "finds the database and its owner first",
    "branches.default": "searches the pages of a listing",
    "branches.ensure": "searches, then verifies or creates",
    "branches.ephemeral": "creates, waits and deletes",
    "branches.find": "searches, then lists names for its error",
    "branches.prune": "lists the branches, then reads and deletes some",
    "branches.reset_from_parent": "reads the branch, then restores it",
    "branches.wait_for": "polls",
    "endpoints.wait_connectable": "reads the compute, then connects to it",
    "databases.ensure": "searches, then verifies or creates",
    "endpoints.ensure": "searches, then verifies or creates",
    "endpoints.find": "searches the list of all computes",
    "endpoints.wait_for": "polls",
    "operations.as_completed": "polls",
    "operations.wait": "polls",
    "operations.wait_for_project": "polls",
    "operations.watch": "polls",
    "projects.find": "searches the pages of a listing",
    "projects.wait_for": "polls",
    "roles.ensure": "searches, then verifies or creates",
    "snapshots.find": "searches the list of all snapshots",
}
"""The methods that are not exactly one request, with the reason."""

NOT_IN_THE_REQUEST = frozenset({"wait"})


class Method(NamedTuple):
    """A method of a resource. ``str()`` is ``branches.create``."""

    resource: str
    name: str
    function: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.resource}.{self.name}"

    @property
    def hints(self) -> dict[str, Any]:
        """The types of the parameters and of the result."""
        hints = get_type_hints(self.function)
        return hints | self._settings(hints)

    @property
    def arguments(self) -> dict[str, inspect.Parameter]:
        """The parameters. Each key of ``**settings`` is a keyword that is not sent by default."""
        parameters = dict(inspect.signature(self.function).parameters)
        del parameters["self"]
        for name, hint in self._settings(get_type_hints(self.function)).items():
            parameters[name] = inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=UNSET, annotation=hint
            )
        return {
            name: parameter
            for name, parameter in parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
        }

    @staticmethod
    def _settings(hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return the types of the keys of ``**settings``."""
        records = [hint for hint in hints.values() if get_origin(hint) is Unpack]
        return {
            key: hint
            for record in records
            for key, hint in get_type_hints(*get_args(record)).items()
        }

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that are part of the request."""
        return {
            name: parameter
            for name, parameter in self.arguments.items()
            if name not in NOT_IN_THE_REQUEST
        }

    @property
    def required(self) -> list[str]:
        """The parameters without a default."""
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is parameter.empty
        ]

    @property
    def takes_wait(self) -> bool:
        """True if the method can wait for the operations that it starts."""
        return "wait" in self.arguments

    @property
    def is_paginated(self) -> bool:
        """True if the method returns a paginator."""
        result = self.hints["return"]
        return Paginator in {get_origin(hint) for hint in (result, *get_args(result))}

    @property
    def is_streamed(self) -> bool:
        """True if the method returns a context manager that reads the response."""
        return get_origin(self.hints["return"]) is AbstractAsyncContextManager

    @property
    def ids(self) -> list[str]:
        """The parameters that are part of the path."""
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.kind is not parameter.KEYWORD_ONLY
            and name.endswith(("_id", "_name", "slug"))
        ]

    @property
    def timestamps(self) -> list[str]:
        """The parameters that are timestamps."""
        return self._of_kind(datetime)

    @property
    def lists(self) -> list[str]:
        """The parameters that are lists."""
        return self._of_kind(Sequence)

    def _of_kind(self, kind: type) -> list[str]:
        hints = self.hints
        return [
            name
            for name in self.parameters
            if kind in {get_origin(hint) or hint for hint in (hints[name], *get_args(hints[name]))}
        ]

    async def call(self, neon: NeonClient, arguments: Mapping[str, object]) -> Any:
        """Send the request of the method. A method with pages requests only the first one."""
        result = getattr(getattr(neon, self.resource), self.name)(**arguments)
        if self.is_streamed:
            async with result as stream:
                return b"".join([part async for part in stream])
        return await (result.collect(limit=1) if self.is_paginated else result)


def public_methods() -> Iterator[Method]:
    """Yield every public method of every resource."""
    for resource, kind in resources():
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield Method(resource, name, function)


def public_records() -> set[type]:
    """Return the records and enumerations of the API that methods take and return."""
    hints = [hint for method in public_methods() for hint in method.hints.values()]
    return {record for hint in hints for record in _records(hint)} - {WaitOptions}


def _records(kind: Any) -> Iterator[type]:
    """Yield the records and enumerations that a type contains, and those of their fields."""
    if is_typeddict(kind):
        yield kind
    elif isinstance(kind, type) and issubclass(kind, Struct | OpenEnum):
        yield kind
        for field in get_type_hints(kind).values() if issubclass(kind, Struct) else ():
            yield from _records(field)
    for part in get_args(kind):
        yield from _records(part)


def resources() -> Iterator[tuple[str, type[Resource]]]:
    """Yield the name and the class of each resource of a client."""
    neon = NeonClient("key")
    for name in RESOURCES:
        resource = getattr(neon, name)
        assert isinstance(resource, Resource)
        yield name, type(resource)


METHODS = [method for method in public_methods() if str(method) not in CONVENIENCES]
