"""The methods of the resources, read off their signatures."""

import inspect
from collections.abc import Mapping
from datetime import datetime
from inspect import Parameter
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from neonctl_async import NeonClient, Paginator
from neonctl_async.resources.base import Resource


class Method(NamedTuple):
    """A method that sends requests: ``neon.<resource>.<name>``."""

    resource: str
    name: str
    parameters: Mapping[str, Parameter]

    def __str__(self) -> str:
        return f"{self.resource}.{self.name}"

    @property
    def ids(self) -> list[str]:
        """The parameters that go into the path."""
        return [
            name
            for name, one in self.parameters.items()
            if one.kind is not Parameter.KEYWORD_ONLY and name.endswith(("_id", "_name"))
        ]

    @property
    def moments(self) -> list[str]:
        """The parameters that are timestamps."""
        kinds = {name: one.annotation for name, one in self.parameters.items()}
        return [name for name, kind in kinds.items() if datetime in (kind, *get_args(kind))]

    # Any: what the method in question gives.
    async def call(self, neon: NeonClient, **arguments: object) -> Any:
        """Call it with ``arguments``, and with a text for whatever else it requires."""
        required = {
            name: "x-1" for name, one in self.parameters.items() if one.default is Parameter.empty
        }
        made = getattr(getattr(neon, self.resource), self.name)(**{**required, **arguments})
        return await made if inspect.isawaitable(made) else made


def _methods_of(resource: str, kind: type[Resource]) -> list[Method]:
    found: list[Method] = []
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        signature = inspect.signature(function)
        lists = get_origin(signature.return_annotation) is Paginator
        if not name.startswith("_") and (lists or inspect.iscoroutinefunction(function)):
            _self, *parameters = signature.parameters.values()
            found.append(Method(resource, name, {one.name: one for one in parameters}))
    return found


METHODS = [
    method
    for resource, kind in get_type_hints(NeonClient).items()
    if issubclass(kind, Resource)
    for method in _methods_of(resource, kind)
]
"""All that are awaited, and all listings."""
