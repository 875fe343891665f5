"""The errors for paths and methods that the local control plane does not serve."""

from collections.abc import Iterable
from urllib.parse import unquote

from neonctl_local.api.description.published import description
from neonctl_local.errors import ApiError


def refusal(method: str, path: str, served: Iterable[str]) -> ApiError:
    """Return the error for a request that no route handles.

    ``path`` is percent-encoded, and relative to the base URL. ``served`` contains the names of the
    routes. The error is 501 for a published endpoint that is not served, 405 with the path's
    methods for another method on a known path, and 404 for everything else.
    """
    names = {*served, *description().endpoints}
    methods, template = _methods_of(path, names)
    if method in methods:
        # Neon's own tools continue without a service if the message contains "not available".
        return ApiError(
            501,
            f"{method} {template} is not available: the local control plane does not serve this "
            "endpoint, use Neon for it",
        )
    if methods:
        return method_not_allowed(method, path, methods)
    return ApiError(404, f"there is no path {unquote(path)!r}")


def method_not_allowed(method: str, path: str, methods: Iterable[str]) -> ApiError:
    """Return the 405 error for a path that supports only other methods."""
    allowed = ", ".join(sorted(methods))
    message = f"{method} is not allowed on {unquote(path)!r}: use {allowed}"
    return ApiError(405, message, headers={"Allow": allowed})


def _methods_of(path: str, names: Iterable[str]) -> tuple[set[str], str]:
    """Return the methods of a path, and the most specific template that matches the path."""
    templates: dict[str, set[str]] = {}
    for name in names:
        method, _, template = name.partition(" ")
        if template.count("/") == path.count("/"):
            templates.setdefault(template, set()).add(method)
    matching = [template for template in templates if _matches(template, path)]
    if not matching:
        return set(), ""
    best = min(matching, key=lambda template: template.count("{"))
    return templates[best], best


def _matches(template: str, path: str) -> bool:
    return all(
        bool(given) if expected.startswith("{") else unquote(given) == expected
        for expected, given in zip(template.split("/"), path.split("/"), strict=True)
    )
