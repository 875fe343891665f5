"""Writes the table of endpoints and methods, and what the local control plane knows of them.

``make endpoints`` runs this module.
"""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.contract import compact
from tests.contract.calls import Call, call_every_method
from tests.contract.description import Description, Endpoint
from tests.contract.prism import prism_server
from tests.contract.typescript import SDK
from tests.support.methods import Method, resources

PAGE = Path(__file__).parents[2] / "docs" / "endpoints.md"
REQUEST = "requests.md#endpoints-without-a-method"

_INTRODUCTION = """\
# Every endpoint of the API

Which method calls the endpoint that you know from Neon's documentation? These are all endpoints
that Neon publishes, each with the method of a `NeonClient`.
{methods} of {published} endpoints have a method. The {deprecated} others are deprecated: call them
with [`neon.request`]({request}).
An unpublished endpoint was published before, and still has its method. The list comes from the
npm package `{package}` {version}.

<div class="rows" markdown>

"""


def methods_by_endpoint(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> dict[str, str]:
    """Return the method that calls each endpoint, from the requests that the methods sent."""
    successful = [call for call in calls.values() if isinstance(call, Call)]
    return {
        str(description.endpoint_of(call.exchange.method, call.exchange.path)): str(call.method)
        for call in successful
    }


def page(description: Description, methods: Mapping[str, str]) -> str:
    """Return the text of the page, with a table for each resource."""
    published = [part for part in description.endpoints if part.stability != "unpublished"]
    lines = [
        _INTRODUCTION.format(
            methods=sum(str(endpoint) in methods for endpoint in published),
            published=len(published),
            deprecated=sum(endpoint.deprecated for endpoint in published),
            request=REQUEST,
            package=SDK,
            version=description.version,
        )
    ]
    resource_of = {name: method.partition(".")[0] for name, method in methods.items()}
    for resource in (*dict(resources()), None):
        rows = [
            _row(endpoint, methods.get(str(endpoint)))
            for endpoint in description.endpoints
            if resource_of.get(str(endpoint)) == resource
        ]
        if rows:
            title = f"`neon.{resource}`" if resource else "Without a method"
            head = f"## {title}\n\n| method | endpoint | stability |\n|---|---|---|\n"
            lines += [head, *rows, "\n"]
    return "".join([*lines, "</div>\n"])


def _row(endpoint: Endpoint, method: str | None) -> str:
    stability = ", ".join(_stability(endpoint)) or "stable"
    called = f"[`neon.{method}`]({_place(method)})" if method else f"[`neon.request`]({REQUEST})"
    return f"| {called} | `{endpoint}` | {stability} |\n"


def _place(method: str) -> str:
    """Return the address of a method in the reference."""
    resource, _, name = method.partition(".")
    kind = dict(resources())[resource]
    return f"reference/{resource}.md#{kind.__module__}.{kind.__name__}.{name}"


def _stability(endpoint: Endpoint) -> Iterator[str]:
    if endpoint.stability:
        yield endpoint.stability
    if endpoint.deprecated:
        yield "deprecated"


def main() -> None:
    """Write ``docs/endpoints.md``, and ``endpoints.json`` of the local control plane."""
    description = Description.newest()
    compact.write(description)
    with prism_server(description) as prism:
        calls = asyncio.run(call_every_method(prism))
    PAGE.write_text(page(description, methods_by_endpoint(description, calls)))


if __name__ == "__main__":
    main()
