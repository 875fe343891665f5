"""The published description of the API: its endpoints, their query parameters and bodies.

``endpoints.json`` is the part of the description that requests are checked with. It is generated:
run ``make endpoints``. ``endpoints-license.txt`` has the licenses of its sources.
"""

from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

FILE: Final = Path(__file__).with_name("endpoints.json")
LICENSE_FILE: Final = FILE.with_name("endpoints-license.txt")

_CONTENT: Final = FILE.read_bytes()  # at import, because requests are handled on the event loop


class Schema(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A JSON schema with the keywords that the description uses in requests."""

    ref: str = field(name="$ref", default="")
    type: str = ""
    format: str = ""
    enum: list[str] = []
    nullable: bool = False
    minimum: int | float | None = None
    maximum: int | float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    required: list[str] = []
    properties: dict[str, "Schema"] = {}
    additional_properties: "Schema | UnsetType" = UNSET
    items: "Schema | UnsetType" = UNSET


class Parameter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query parameter."""

    required: bool = False
    schema: Schema = Schema()


class Endpoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A published endpoint. ``body`` is unset if its requests have no body."""

    stability: str = ""
    query: dict[str, Parameter] = {}
    body: Schema | UnsetType = UNSET
    body_required: bool = False


class Description(Struct, frozen=True, kw_only=True):
    """The published endpoints by name, such as ``GET /projects/{project_id}``."""

    source: str
    restrictions: str
    license: str
    endpoints: dict[str, Endpoint]
    schemas: dict[str, Schema]


@cache
def description() -> Description:
    """Return the description. The first call decodes it."""
    return msgspec.json.decode(_CONTENT, type=Description)
