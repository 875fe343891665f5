"""Rendering of pages. All templates are compiled in advance, so rendering does not read files."""

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from neonctl_local.console import formats, states

# Any: Jinja2 infers a type that lists its own filters.
_FILTERS: Final[dict[str, Any]] = {
    "duration": formats.duration,
    "explained": formats.explained,
    "size": formats.size,
    "moment": formats.moment,
    "period": formats.period,
    "state_kind": states.kind,
}


class Rendering:
    """The Jinja environment. Creating it reads files."""

    def __init__(self) -> None:
        self.environment: Final = Environment(
            loader=PackageLoader("neonctl_local.console"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters.update(_FILTERS)
        for name in self.environment.list_templates():
            self.environment.get_template(name)

    def render(self, name: str, /, **context: object) -> str:
        """Return a page."""
        return self.environment.get_template(name).render(context)


@cache
def shared_rendering() -> Rendering:
    """Return the Jinja environment that all servers of this process share."""
    return Rendering()
