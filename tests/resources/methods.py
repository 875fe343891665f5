"""The methods of the resources, read off their signatures."""

import inspect
from datetime import datetime
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from neonctl_async import NeonClient, Paginator
from neonctl_async.resources.base import Resource


class Method(NamedTuple):
    """A method that sends requests, as ``neon.<resource>.<name>``."""

    resource: str
    name: str
    signature: inspect.Signature

    def __str__(self) -> str:
        return f"{self.resource}.{self.name}"

    @property
    def ids(self) -> list[str]:
        """The parameters that go into the path."""
        return [name for name in self.signature.parameters if name in self._positional]

    @property
    def moments(self) -> list[str]:
        """The parameters that are timestamps."""
        annotated = {name: one.annotation for name, one in self.signature.parameters.items()}
        return [name for name, kind in annotated.items() if datetime in (kind, *get_args(kind))]

    # Any: what the method in question gives.
    async def call(self, neon: NeonClient, **arguments: object) -> Any:
        """Call it with ``arguments``, and with a text for whatever else it requires."""
        required = {
            name: "x-1"
            for name, one in self.signature.parameters.items()
            if one.default is inspect.Parameter.empty
        }
        made = getattr(getattr(neon, self.resource), self.name)(**{**required, **arguments})
        return await made if inspect.isawaitable(made) else made

    @property
    def _positional(self) -> set[str]:
        by_position = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return {
            name
            for name, one in self.signature.parameters.items()
            if one.kind is by_position and name.endswith(("_id", "_name"))
        }


def _methods_of(resource: str, kind: type[Resource]) -> list[Method]:
    found: list[Method] = []
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        signature = inspect.signature(function)
        lists = get_origin(signature.return_annotation) is Paginator
        if not name.startswith("_") and (lists or inspect.iscoroutinefunction(function)):
            bare = list(signature.parameters.values())[1:]
            found.append(Method(resource, name, signature.replace(parameters=bare)))
    return found


METHODS = [
    method
    for resource, kind in get_type_hints(NeonClient).items()
    if issubclass(kind, Resource)
    for method in _methods_of(resource, kind)
]
