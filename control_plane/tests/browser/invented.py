"""Pages that no server has: Playwright responds to the requests of a page."""

from collections.abc import Mapping

from playwright.async_api import Page, Route

ORIGIN = "http://127.0.0.1:1"
"""No server listens there."""

POLICY = "default-src 'none'; script-src 'self'; img-src *"


async def serve(page: Page, files: Mapping[str, str]) -> None:
    """Serve files by their paths. An empty file stands for a connection that is lost."""

    async def respond(route: Route) -> None:
        path = route.request.url.removeprefix(ORIGIN)
        if path not in files:
            await route.fulfill(status=404, body="missing")
        elif not files[path]:
            await route.abort("connectionreset")
        else:
            kind = "text/javascript" if path.endswith(".js") else "text/html"
            headers = {"Content-Security-Policy": POLICY}
            await route.fulfill(body=files[path], content_type=kind, headers=headers)

    await page.route(f"{ORIGIN}/**", respond)


def html(body: str, style: str = "") -> str:
    """Return a page with this content, which has no accessibility violation of its own."""
    head = f"<title>A page</title>{style}"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>"
