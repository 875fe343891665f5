"""``python -m tests.contract.endpoints`` writes the page of all endpoints and their methods."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.contract.calls import Call, call_every_method
from tests.contract.description import PACKAGE, Description, Endpoint
from tests.contract.prism import serving
from tests.support.methods import Method

PAGE = Path(__file__).parents[2] / "docs" / "endpoints.md"

_BEGIN = """\
# Every endpoint of the API

What the platform publishes, in the npm package `{package}` {version}, and the method of a
client `neon` that calls it. What has no method is called by [`neon.request`](request.md).

"""


def method_of_each(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> dict[str, str]:
    """The method that calls each endpoint, by what was sent."""
    seen = [call for call in calls.values() if isinstance(call, Call)]
    return {
        str(description.endpoint_of(call.exchange.method, call.exchange.path)): str(call.method)
        for call in seen
    }


def page(description: Description, methods: Mapping[str, str]) -> str:
    """The text of the page: a table for each tag."""
    lines = [_BEGIN.format(package=PACKAGE, version=description.version)]
    for tag in dict.fromkeys(endpoint.tags[0] for endpoint in description.endpoints):
        lines.append(f"## {tag}\n\n| endpoint | stability | method |\n|---|---|---|\n")
        lines += [
            _row(endpoint, methods.get(str(endpoint)))
            for endpoint in description.endpoints
            if endpoint.tags[0] == tag
        ]
        lines.append("\n")
    return "".join(lines).rstrip() + "\n"


def _row(endpoint: Endpoint, method: str | None) -> str:
    standing = ", ".join(_standing(endpoint)) or "stable"
    called = f"`neon.{method}`" if method else "by `request()`"
    return f"| `{endpoint}` | {standing} | {called} |\n"


def _standing(endpoint: Endpoint) -> Iterator[str]:
    if endpoint.stability:
        yield endpoint.stability
    if endpoint.deprecated:
        yield "deprecated"


def main() -> None:
    """Write the page."""
    description = Description()
    with serving(description.file) as prism:
        calls = asyncio.run(call_every_method(prism))
    PAGE.write_text(page(description, method_of_each(description, calls)))


if __name__ == "__main__":
    main()
