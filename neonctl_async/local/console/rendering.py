"""Renders the templates. All of them are compiled at the start: rendering reads no file."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from neonctl_async.local.console import formats


class Rendering:
    """The Jinja environment. Creating the first one reads files."""

    def __init__(self) -> None:
        self._environment = _environment()

    def render(self, name: str, /, **context: object) -> str:
        """Return a page."""
        return self._environment.get_template(name).render(context)


@cache  # compiling all templates takes longer than starting a local control plane
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("neonctl_async.local.console"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {  # Any: Jinja's filters have no common type
        "duration": formats.duration,
        "size": formats.size,
        "age": formats.age,
    }
    environment.filters.update(filters)
    for name in environment.list_templates():
        environment.get_template(name)
    return environment
