"""Whether JSON is what a schema says."""

from collections.abc import Callable, Iterator
from datetime import datetime
from uuid import UUID

from neonctl_async.transport.protocol import Json
from tests.contract.description import Description, Schema

_TYPES: dict[str, tuple[type, ...]] = {
    "": (object,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_FORMATS: dict[str, Callable[[str], object]] = {"date-time": datetime.fromisoformat, "uuid": UUID}


def misfits(
    description: Description, schema: Schema, content: Json, place: str = "answer"
) -> Iterator[str]:
    """What in ``content`` a schema does not allow, and what it requires that is not there."""
    whole = description.whole(schema)
    is_number = isinstance(content, bool) and whole.type != "boolean"
    if content is None and whole.nullable:
        return
    if is_number or not isinstance(content, _TYPES[whole.type]):
        yield f"{place} is {content!r}, not of type {whole.type}"
    elif isinstance(content, dict):
        yield from _misfits_of_object(description, whole, content, place)
    elif isinstance(content, list) and whole.items:
        for number, one in enumerate(content):
            yield from misfits(description, whole.items, one, f"{place}[{number}]")
    elif isinstance(content, str):
        yield from _misfits_of_text(whole, content, place)


def _misfits_of_object(
    description: Description, schema: Schema, content: dict[str, Json], place: str
) -> Iterator[str]:
    for name in schema.required:
        if name not in content:
            yield f"{place}.{name} is missing"
    for name, value in content.items():
        inner = schema.properties.get(name, schema.values)
        if isinstance(inner, Schema):
            yield from misfits(description, inner, value, f"{place}.{name}")
        elif schema.properties:
            yield f"{place}.{name} is not published"


def _misfits_of_text(schema: Schema, content: str, place: str) -> Iterator[str]:
    if schema.enum and content not in schema.enum:
        yield f"{place} is {content!r}, none of {schema.enum}"
    try:
        _FORMATS.get(schema.format, str)(content)
    except ValueError:
        yield f"{place} is {content!r}, no {schema.format}"
