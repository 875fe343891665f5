"""An extension of griffe for the reference: roles become links, Structs get a signature.

mkdocs.yml names it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

import griffe

ROLE = re.compile(r":\w+:`([\w.]+)`")


class Docstrings(griffe.Extension):
    """Changes docstrings and signatures after griffe has read them."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Turn the roles of a docstring into links."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(lambda role: _link(obj, role[1]), obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: object) -> None:
        """Add the signature of a Struct, and the members of an enumeration."""
        bases = {str(base) for owner in (cls, *cls.mro()) for base in owner.bases}
        if "msgspec.Struct" in bases and "__init__" not in cls.members:
            cls.set_member("__init__", _constructor(cls))
            _move_to_table(cls)
        elif "OpenEnum" in bases and cls.docstring:
            members = "\n".join(f"{field.name} = {field.value}" for field in _fields(cls))
            cls.docstring.value += f"\n\n```python\n{members}\n```"

    def on_function(self, *, func: griffe.Function, **_: object) -> None:
        """Replace a default that is a constant of the package by its value."""
        for parameter in func.parameters:
            if isinstance(parameter.default, griffe.ExprName) and parameter.default.name.isupper():
                with suppress(KeyError):  # of another package
                    constant = func.modules_collection[parameter.default.canonical_path]
                    parameter.default = constant.value


def _link(obj: griffe.Object, name: str) -> str:
    """Return a link to ``neon.resource.method``, or to a name in the scope of the object."""
    head, dot, rest = name.partition(".")
    if head == "neon":
        resource, _, method = rest.partition(".")
        client = obj.modules_collection["neonctl_async.client.NeonClient"]
        return f"[`{name}`][{client.all_members[resource].annotation.canonical_path}.{method}]"
    for scope in (obj, obj.modules_collection["neonctl_async.client"]):
        with suppress(griffe.NameResolutionError):
            return f"[`{name}`][{scope.resolve(head)}{dot}{rest}]"
    return f"`{name}`"


def _fields(cls: griffe.Class) -> Iterator[griffe.Attribute]:
    for name, member in cls.members.items():
        if name.startswith("_"):
            continue
        if isinstance(member, griffe.Attribute) and "property" not in member.labels:
            yield member


def _move_to_table(struct: griffe.Class) -> None:
    """Move the docstrings of fields to a table in the docstring of their Struct."""
    rows: list[str] = []
    for field in _fields(struct):
        if field.docstring:
            rows.append(f"| `{field.name}` | {' '.join(field.docstring.value.split())} |")
            field.docstring = None
    if rows and struct.docstring:
        struct.docstring.value += "\n\n| field | meaning |\n|---|---|\n" + "\n".join(rows)


def _constructor(struct: griffe.Class) -> griffe.Function:
    owners = (*reversed(struct.mro()), struct)
    fields = {field.name: field for owner in owners for field in _fields(owner)}
    parameters = (
        griffe.Parameter(
            field.name,
            annotation=field.annotation,
            kind=griffe.ParameterKind.keyword_only,
            default=field.value,
        )
        for field in fields.values()
    )
    return griffe.Function("__init__", parameters=griffe.Parameters(*parameters), parent=struct)
