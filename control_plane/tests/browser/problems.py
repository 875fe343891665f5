"""Finds pages that log an error, fail, or send a request to another host."""

import re

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Request, Response, WebError

ABORTED = "net::ERR_ABORTED"
"""A request that its page has cancelled, for example because the person went to another page."""

REPORTED = "Failed to load resource: the server responded with a status of"
"""The start of a console error about a response. The response itself is a problem already."""


SECRET = re.compile(r"napi_|npg_|neon_\w+_key_|[?&](password|key|csrf|token)=[^&]")
"""A key, a password or a token in an address."""

SIGN_IN = "/console/sign-in?token="
"""The start of a link, in which the token is valid once."""


class Problems:
    """Collects the problems of pages. A test fails if it has one that it does not expect.

    - errors and warnings in the console, which include violations of the content security policy
    - exceptions that no code of the page catches
    - dialogs, which names with markup could open
    - secrets in addresses
    - requests to another origin than ``origin``
    - requests that fail, and responses with a status of 400 or above
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.found: list[str] = []
        self._expected: list[str] = []

    def attach(self, context: BrowserContext) -> None:
        """Collect the problems of all pages of a context."""
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("dialog", self._on_dialog)
        context.on("request", self._on_request)
        context.on("requestfailed", self._on_failure)
        context.on("response", self._on_response)

    def expect(self, pattern: str) -> None:
        """Allow the problems in which this pattern is found. The test fails if there is none."""
        self._expected.append(pattern)

    def check(self) -> None:
        """Fail if there was an unexpected problem, or if an expected one is missing."""
        unexpected = [
            problem
            for problem in self.found
            if not any(re.search(pattern, problem) for pattern in self._expected)
        ]
        assert not unexpected, "problems of the pages:\n" + "\n".join(unexpected)
        missing = [
            pattern
            for pattern in self._expected
            if not any(re.search(pattern, problem) for problem in self.found)
        ]
        assert not missing, f"problems that the test expects did not occur: {missing}"

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(REPORTED):
            self.found.append(f"console {message.type}: {message.text}")

    def _on_error(self, error: WebError) -> None:
        self.found.append(f"exception: {error.error}")

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.found.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(f"{self.origin}/"):
            self.found.append(f"foreign request: {request.method} {request.url}")
        if SECRET.search(request.url.removeprefix(f"{self.origin}{SIGN_IN}")):
            self.found.append(f"secret in an address: {self._named(request)}")

    def _on_failure(self, request: Request) -> None:
        if request.failure != ABORTED:
            self.found.append(f"failed request: {self._named(request)}: {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.found.append(f"status {response.status}: {self._named(response.request)}")

    def _named(self, request: Request) -> str:
        return f"{request.method} {request.url.removeprefix(self.origin)}"
