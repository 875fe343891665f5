"""The pages, in Markdown: blocks with a blank line between them."""

import re
import textwrap
from collections.abc import Iterator

import griffe

from tools.reference.source import (
    ROOT,
    Entry,
    Source,
    Type,
    given,
    held,
    is_data,
    is_record,
    members,
    resolved,
    taken,
    usage,
)

FOLDER = ROOT / "docs" / "reference"
INDEX = "README"
WIDEST = 100
MADE = "<!-- Made from the docstrings by `make docs`. -->"
READING = """\
## How to read it

- A method is shown as it is called: after `await`, `async for … in` or `async with`. What comes of
  it stands after `->`.
- `= ...` marks what may be left out. It is then not sent, and the platform decides. In code, its
  value is `UNSET`: `name=UNSET if name is None else name` passes on what may be missing.
- Records are frozen, and equal where all their fields are. What an answer holds beyond the fields
  is ignored.
- A field that is `None` was null in the answer, or not in it. A `Timestamp` is a `datetime` with a
  time zone.
- An answer that holds `operations` can be waited on as it is:
  `await neon.operations.wait(answer)`."""
ROLE = re.compile(r":\w+:`~?([\w.]+)`")


class Pages:
    """Makes them. An entry is described on one page alone, and linked to from the others."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._entries: dict[str, list[Entry]] = {name: [] for name in (INDEX, *source.resources)}
        self._places: dict[str, tuple[str, str]] = {}
        for name, resource in source.resources.items():
            for method in source.methods[name]:
                place = name, f"neon{name}{method.name}"
                self._places[f"{name}.{method.name}"] = place
                self._places[f"{resource.name}.{method.name}"] = place
            for entry in source.entries[name]:
                self._settle(entry, name)

    def _settle(self, entry: Entry, page: str) -> None:
        """Put an entry on the page that its module names, else on the first that leads to it."""
        if entry.name in self._places:
            return
        home = entry.module.name
        if home not in self._source.resources:
            home = page if is_record(entry) else INDEX
        self._places[entry.name] = home, entry.name.lower()
        self._entries[home].append(entry)

    def texts(self) -> dict[str, str]:
        """The text of each page, by file name."""
        blocks = {INDEX: self._index()}
        blocks |= {name: self._resource(name) for name in self._source.resources}
        return {
            f"{name}.md": "\n\n".join(filter(None, (MADE, *several))) + "\n"
            for name, several in blocks.items()
        }

    def _index(self) -> Iterator[str]:
        yield "# Reference"
        lines = (
            f"| [`neon.{name}`]({name}.md) | {self._prose(field, INDEX)} |"
            for name, field in self._source.fields.items()
        )
        yield "\n".join(("| on a client | |", "|---|---|", *lines))
        yield READING
        yield "## Types"
        for entry in self._entries[INDEX]:
            yield from self._entry(entry, INDEX)

    def _resource(self, page: str) -> Iterator[str]:
        yield f"# `neon.{page}`"
        yield self._prose(self._source.resources[page], page)
        yield " · ".join(self._link(method.name, page) for method in self._source.methods[page])
        for method in self._source.methods[page]:
            name = f"neon.{page}.{method.name}"
            yield f"## `{name}`"
            yield code("\n".join(call(name, one) for one in method.overloads or [method]))
            yield self._prose(method, page)
            yield self._links("Takes", taken(method), page)
            yield self._links("Gives", given(method), page)
        if self._entries[page]:
            yield "## Records"
        for entry in self._entries[page]:
            yield from self._entry(entry, page)

    def _entry(self, entry: Entry, page: str) -> Iterator[str]:
        yield f"### `{entry.name}`"
        if isinstance(entry, griffe.Class):
            yield self._prose(entry, page)
            yield fields(entry)
            yield self._links("See", held(entry), page)
            yield "\n".join(self._members(entry, page)).rstrip()
        else:
            yield code(f"{entry.name} = {written(entry.value)}")
            yield self._prose(entry, page)
            yield self._links("See", held(entry), page)

    def _members(self, entry: griffe.Class, page: str) -> Iterator[str]:
        """What a class adds to its bases and has more to say of than a name and a type."""
        for member in members(entry):
            if member.parent is entry and member.docstring:
                if isinstance(member, griffe.Function):
                    head = call(member.name, member)
                else:
                    head = f"{member.name}: {written(member.annotation)}"
                text = textwrap.indent(self._prose(member, page), "  ").lstrip()
                yield f"- `{head}`\n\n  {text}\n" if "\n\n" in text else f"- `{head}`: {text}"

    def _prose(self, described: griffe.Object, page: str) -> str:
        text = described.docstring.value if described.docstring else ""
        return ROLE.sub(lambda role: self._link(role[1], page), text).replace("``", "`")

    def _links(self, label: str, entries: list[Entry], page: str) -> str:
        links = ", ".join(self._link(entry.name, page) for entry in entries)
        return links and f"{label} {links}."

    def _link(self, name: str, page: str) -> str:
        """A link to a method of the page, to an entry, or to any method; else the name as code."""
        short = name.rpartition(".")[2]
        for known in (f"{page}.{name}", name, short):
            if known in self._places:
                home, anchor = self._places[known]
                return f"[`{short}`]({'' if home == page else f'{home}.md'}#{anchor})"
        return f"`{name}`"


def call(name: str, function: griffe.Function) -> str:
    """A call with its types: on one line if it fits, else a parameter a line."""
    keyword, type_ = usage(function)
    parameters: list[str] = []
    for one in function.parameters:
        if one.kind is griffe.ParameterKind.keyword_only and "*" not in parameters:
            parameters.append("*")
        if one.name != "self":
            parameters.append(f"{one.name}: {written(one.annotation, one.default)}")
    line = f"{keyword}{name}({', '.join(parameters)}) -> {written(type_)}"
    if len(line) <= WIDEST:
        return line
    lines = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"{keyword}{name}(\n{lines}) -> {written(type_)}"


def fields(entry: griffe.Class) -> str:
    """The fields of a record, or the members of an enumeration, as a class."""
    data = [one for one in members(entry) if isinstance(one, griffe.Attribute) and is_data(one)]
    bases = ", ".join(str(base) for base in entry.bases if str(base) != "Model")
    lines = (
        f"{one.name}: {written(one.annotation, one.value)}"
        if one.annotation
        else f"{one.name} = {written(one.value)}"
        for one in data
    )
    head = f"class {entry.name}({bases}):" if bases else f"class {entry.name}:"
    return code("\n    ".join((head, *lines))) if data else ""


def written(type_: Type, default: Type = None) -> str:
    """A type, or one with its default, as it is best read: a constant by its value."""
    default = getattr(resolved(default), "value", default)
    text = str(type_) if default is None else f"{type_} = {default}"
    for noise, plain in ((" | UnsetType", ""), ("= UNSET", "= ..."), ("builtins.", ""), ("'", '"')):
        text = text.replace(noise, plain)
    return text


def code(text: str) -> str:
    """A block that looks like Python, and is not run as ``python`` blocks are."""
    return f"```py\n{text}\n```"
