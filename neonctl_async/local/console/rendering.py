"""Rendering of pages. All templates are compiled at the start: rendering reads no file."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from neonctl_async.local.console import formats, states

# Any: a template can show every result.
_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "duration": formats.duration,
    "size": formats.size,
    "age": formats.age,
    "period": formats.period,
    "state_kind": states.kind,
}


class Rendering:
    """The Jinja environment. Creating it reads files."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("neonctl_async.local.console"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: dict[str, Callable[..., Any]] = self._environment.filters
        filters |= _FILTERS
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def render(self, name: str, /, **context: object) -> str:
        """Return a page."""
        return self._environment.get_template(name).render(context)


@cache
def shared_rendering() -> Rendering:
    """Return the Jinja environment of all servers of this process."""
    return Rendering()
