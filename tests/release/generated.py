"""Writes a program that calls each method of the API with each of its parameters."""

import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import cast

import msgspec

from tests.support.arguments import every_argument
from tests.support.methods import METHODS, Method

_HEAD = '''\
"""Every method, with every parameter: never run."""

from datetime import datetime

from neonctl_async import NeonClient, types


async def calls(neon: NeonClient) -> None:
'''


def program() -> str:
    """Return the source of the program. It names types as users import them."""
    return _HEAD + "".join(f"    {_call(method)}\n" for method in METHODS)


def _call(method: Method) -> str:
    arguments = every_argument(method)
    parameters = method.parameters
    sources = [
        _source(value)
        if parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        else f"{name}={_source(value)}"
        for name, value in arguments.items()
    ]
    call = f"neon.{method}({', '.join(sources)})"
    return f"await {call}" if inspect.iscoroutinefunction(method.function) else f"print({call})"


def _source(value: object) -> str:
    match value:
        case msgspec.Struct():
            fields = msgspec.structs.asdict(value).items()
            inner = ", ".join(f"{name}={_source(part)}" for name, part in fields)
            return f"types.{type(value).__name__}({inner})"
        case Enum():
            return f"types.{type(value).__name__}({value.value!r})"
        case datetime():
            return f"datetime.fromisoformat({value.isoformat()!r})"
        case Mapping():
            items = cast("Mapping[str, object]", value).items()
            return f"{{{', '.join(f'{key!r}: {_source(part)}' for key, part in items)}}}"
        case Sequence() if not isinstance(value, str | bytes):
            return f"[{', '.join(map(_source, cast('Sequence[object]', value)))}]"
        case _:
            return repr(value)
