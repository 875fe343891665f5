"""Reads the endpoints and schemas of Neon's TypeScript SDK.

``make contract`` converts the types of the SDK to JSON Schema with ts-json-schema-generator. The
calls of the SDK give the method and the path of each endpoint.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

SDK = "@neon/sdk"
TYPES = "types.json"
"""The file with the types of the SDK as JSON Schema."""

_CALL = re.compile(
    r"const (\w+) = \(options\) => \(options\??\.client \?\? client\)"
    r"\.(get|post|put|patch|delete)\((\{.*?\n\}|\{.*?\})\);",
    re.DOTALL,
)
_URL = re.compile(r'\burl: "([^"]+)"')
_EXPORTS = re.compile(r"^export \{(.*?)\};$", re.DOTALL | re.MULTILINE)
_DECLARATION = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*(?:export )?declare const (\w+):", re.DOTALL)


class UnknownFormError(Exception):
    """A package describes the API in a form that these modules do not read yet."""


class SdkEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that the SDK calls. ``str()`` is ``GET /projects/{project_id}``."""

    name: str
    method: str
    path: str
    text: str
    """Its documentation."""
    is_form: bool
    """True if its body is a form with files."""

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def is_deprecated(self) -> bool:
        """True if the SDK marks the endpoint as deprecated."""
        return "@deprecated" in self.text

    @property
    def stability(self) -> str:
        """``beta`` if the documentation states it, else an empty string."""
        return "beta" if re.search(r"\*\*Note\*\*: .*\bBeta\b", self.text) else ""


class TypeScriptSdk:
    """The types and the calls of the SDK."""

    def __init__(self, folder: Path) -> None:
        package = folder / "node_modules" / SDK
        self._client = package / "dist" / "client"
        facts = msgspec.json.decode((package / "package.json").read_bytes(), type=dict[str, Any])
        self.version = str(facts["version"])
        types = msgspec.json.decode((folder / TYPES).read_bytes(), type=dict[str, Any])
        # Any: parts of a JSON Schema.
        self.types: Mapping[str, dict[str, Any]] = types["definitions"]

    def endpoints(self) -> Iterator[SdkEndpoint]:
        """Yield the endpoints in the order of the SDK.

        Raises UnknownFormError for a call in a form that another generator wrote.
        """
        texts = {name: text for text, name in _DECLARATION.findall(self._read("sdk.gen.d.ts"))}
        code = self._read("sdk.gen.js")
        calls = _CALL.findall(code)
        exported = {name.strip() for names in _EXPORTS.findall(code) for name in names.split(",")}
        names = {name for name, _, _ in calls}
        unread = (exported ^ names) | (names - texts.keys())
        if unread or not calls:
            first = ", ".join(sorted(unread)[:3]) or "all calls"
            raise UnknownFormError(f"sdk.gen.js or sdk.gen.d.ts has a new form of {first}")
        for name, method, options in calls:
            [path] = _URL.findall(options)
            yield SdkEndpoint(
                name=name,
                method=method,
                path=path,
                text=texts[name],
                is_form="formDataBodySerializer" in options,
            )

    def types_of(self, endpoint: SdkEndpoint, kind: str) -> Mapping[str, Any]:
        """Return the properties of the ``Data``, ``Responses`` or ``Errors`` of an endpoint."""
        name = f"{endpoint.name[0].upper()}{endpoint.name[1:]}{kind}"
        properties: Mapping[str, Any] = self.types[name]["properties"]
        return properties

    def required_types_of(self, endpoint: SdkEndpoint) -> list[str]:
        """Return the parts that a request must have, such as ``body``."""
        name = f"{endpoint.name[0].upper()}{endpoint.name[1:]}Data"
        required: list[str] = self.types[name]["required"]
        return required

    def _read(self, file: str) -> str:
        return (self._client / file).read_text(encoding="utf-8")
