"""Renders the templates. All of them are compiled at the start: rendering reads no file."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from neonctl_async.local.console import formats, states


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
        self._environment.filters.update(
            duration=formats.duration,
            size=formats.size,
            age=formats.age,
            period=formats.period,
            state_kind=states.kind,
        )
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def render(self, name: str, /, **context: object) -> str:
        """Return a page."""
        return self._environment.get_template(name).render(context)
