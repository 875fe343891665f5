"""Answers without a server: aioresponses, made to fit the aiohttp that is installed.

::

    with Canned() as canned:
        canned.add("GET", f"{base_url}/projects/p-1", payload={"project": ...})
        await neon.projects.get("p-1")
"""

from types import SimpleNamespace, TracebackType
from typing import Any, Self

from aiohttp import ClientResponse
from aioresponses import aioresponses


class CannedResponse(ClientResponse):
    """A response that nobody wrote a request for.

    From aiohttp 3.14 on a response asks what wrote its request how much that was; aioresponses
    up to 0.7.9 names nothing of the kind.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("stream_writer", SimpleNamespace(output_size=0))
        super().__init__(*args, **settings)


class Canned:
    """``aioresponses`` whose answers are of a class that can be made."""

    def __init__(self) -> None:
        self._mock: Any = aioresponses()

    def __enter__(self) -> Self:
        self._mock.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mock.stop()

    def add(self, method: str, url: str, **answer: Any) -> None:
        """Can one answer, as ``aioresponses.add`` takes it."""
        self._mock.add(url, method, response_class=CannedResponse, **answer)
