"""What there is to describe: the methods of the client, and what they take and give.

Read from the source, without running it, and kept in its order.
"""

from itertools import chain
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[2]
PACKAGE = "neonctl_async"
TOLD_ONCE = {"Model", "Timestamp"}
"""Nearly every record names these: the index tells of them, and no link leads there."""

Type = str | griffe.Expr | None
Entry = griffe.Class | griffe.Attribute
"""What has a description of its own: a record, an enumeration, another class, an alias."""
Member = griffe.Function | griffe.Attribute


class Source:
    """The resources by their name on the client, and the entries that their methods lead to."""

    def __init__(self) -> None:
        package = griffe.load(PACKAGE, search_paths=[ROOT], allow_inspection=False)
        client = package["client.NeonClient"]
        self.exported = set(package.exports or ())
        self.fields = {field.name: field for field in members(client) if is_data(field)}
        self.resources = {name: _class_of(field) for name, field in self.fields.items()}
        self.methods = {name: _methods(owner) for name, owner in self.resources.items()}
        self.entries = {name: _entries(methods) for name, methods in self.methods.items()}

    def undocumented(self) -> list[str]:
        """What has no docstring and is no alias, which says by itself what it is."""
        described: list[griffe.Object] = [*self.fields.values()]
        for owner in (*self.resources.values(), *chain.from_iterable(self.entries.values())):
            if isinstance(owner, griffe.Class):
                described += [owner, *(one for one in members(owner) if not is_data(one))]
        return sorted({one.path for one in described if not one.has_docstring})

    def unexported(self) -> list[str]:
        """The records that a caller could only import from within the package."""
        records = filter(is_record, chain.from_iterable(self.entries.values()))
        return sorted({one.path for one in records if one.name not in self.exported})


def members(owner: griffe.Object | griffe.Alias) -> list[Member]:
    """The public methods, properties and fields, inherited ones first."""
    found = [
        one.final_target if isinstance(one, griffe.Alias) else one
        for name, one in owner.all_members.items()
        if not name.startswith("_")
    ]
    return [one for one in found if isinstance(one, Member)]


def is_data(member: Member) -> bool:
    """Whether it holds something by itself: a field, or a member of an enumeration."""
    return isinstance(member, griffe.Attribute) and "property" not in member.labels


def is_record(entry: Entry) -> bool:
    """Whether it is a Struct or an enumeration of the API."""
    return isinstance(entry, griffe.Class) and any(
        base.name in {"Model", "OpenEnum"} for base in entry.mro()
    )


def named(*several: Type) -> list[Entry]:
    """What types name of this package, each once."""
    found: list[Entry] = []
    for name in chain.from_iterable(
        one.iterate(flat=True) for one in several if isinstance(one, griffe.Expr)
    ):
        entry = resolved(name)
        if isinstance(entry, Entry) and _has_description(entry) and entry not in found:
            found.append(entry)
    return found


def resolved(name: Type) -> griffe.Object | None:
    """What a name stands for, if that is of this package."""
    if not isinstance(name, griffe.ExprName) or not name.canonical_path.startswith(f"{PACKAGE}."):
        return None
    found = name.resolved
    return found.final_target if isinstance(found, griffe.Alias) else found


def usage(function: griffe.Function) -> tuple[str, Type]:
    """The keyword that a call stands after, and the type of what comes of both."""
    returned = function.returns
    head, inner = str(returned), returned
    if isinstance(returned, griffe.ExprSubscript):
        head, inner = str(returned.left).rpartition(".")[2], returned.slice
        if isinstance(inner, griffe.ExprTuple):
            inner = inner.elements[-1 if head == "Coroutine" else 0]
    decorators = {decorator.callable_path.rpartition(".")[2] for decorator in function.decorators}
    if "asynccontextmanager" in decorators or head == "AbstractAsyncContextManager":
        return "async with ", inner
    if head in {"Paginator", "AsyncGenerator", "AsyncIterator"}:
        return "async for … in ", returned
    if head in {"Awaitable", "Coroutine"}:
        return "await ", inner
    return "await " if "async" in function.labels else "", returned


def taken(function: griffe.Function) -> list[Entry]:
    """What the types of the parameters name."""
    return named(*(parameter.annotation for parameter in function.parameters))


def given(function: griffe.Function) -> list[Entry]:
    """What the type of the result names."""
    return named(usage(function)[1])


def held(entry: Entry) -> list[Entry]:
    """What the types that an entry is made of name."""
    if isinstance(entry, griffe.Attribute):
        return named(entry.value)
    found = named(*entry.bases)
    for member in members(entry):
        if isinstance(member, griffe.Attribute):
            found += named(member.annotation)
        else:
            found += taken(member) + given(member)
    return list(dict.fromkeys(found))


def _class_of(field: Member) -> griffe.Class:
    [entry] = named(field.annotation)
    assert isinstance(entry, griffe.Class)
    return entry


def _methods(resource: griffe.Class) -> list[griffe.Function]:
    """Its own methods, then those that it inherits."""
    found = [one for one in members(resource) if isinstance(one, griffe.Function)]
    return sorted(found, key=lambda method: method.parent is not resource)


def _entries(methods: list[griffe.Function]) -> list[Entry]:
    """What the methods name, then what that holds, and so on."""
    found = dict.fromkeys(chain.from_iterable(taken(method) + given(method) for method in methods))
    for entry in (growing := list(found)):
        for other in held(entry):
            if other not in found:
                found[other] = None
                growing.append(other)
    return growing


def _has_description(entry: Entry) -> bool:
    is_type_variable = isinstance(entry, griffe.Attribute) and "TypeVar(" in str(entry.value)
    return entry.name not in TOLD_ONCE and not is_type_variable
