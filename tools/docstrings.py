"""Extensions of griffe for the reference: roles become links, parameters and fields a table.

mkdocs.yml names it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import escape
from typing import NamedTuple

import griffe

ROLE = re.compile(r":\w+:`~?([\w.]+)`")
ITEM = re.compile(r"^- ((?:``\w+``(?:, )?)+): (.+(?:\n +.+)*)\n?", re.MULTILINE)
"""An item of a list in a docstring that describes parameters."""
UNITS = {
    "_bytes": "bytes",
    "_bytes_hour": "byte-hours",
    "_bytes_month": "byte-months",
    "_cents": "cents",
    "_cu": "compute units",
    "_delay": "seconds",
    "_days": "days",
    "_interval": "seconds",
    "_mib": "MiB",
    "_minutes": "minutes",
    "_ms": "milliseconds",
    "_per_minute": "requests a minute",
    "_per_second": "requests a second",
    "_retry_after": "seconds",
    "_sec": "seconds",
    "_seconds": "seconds",
    "_timeout": "seconds",
}
"""The units of numbers, by the end of their name."""
FACTORS = frozenset({"growth", "jitter", "probability"})
"""Numbers without a unit."""
IN_UNIT = re.compile(
    r"\b(?:in|this many|^the) (?:CPU )?"
    r"(milliseconds|seconds|minutes|days|bytes|MiB|cents|compute units)\b",
    re.IGNORECASE,
)
PACKAGES = ("neonctl_async", "neonctl_local", "pytest_neonctl_async")


class Row(NamedTuple):
    """The description of a parameter or field. All but the name are Markdown."""

    name: str
    type: str
    default: str
    meaning: str


class Docstrings(griffe.Extension):
    """Changes docstrings and signatures after griffe has read them."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Turn the roles of a docstring into links."""
        if obj.docstring:
            obj.docstring.value = _with_links(obj, obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: object) -> None:
        """Add a table with the fields of a record, and the members of an enumeration."""
        bases = _bases(cls)
        if {"msgspec.Struct", "TypedDict"} & bases and "__init__" not in cls.members:
            _add_table(cls, "field", list(_field_rows(cls)))
            for field in _fields(cls):
                field.extra["reference"]["text"] = _field_text(field)
                field.docstring = None
        elif "OpenEnum" in bases and cls.docstring:
            members = "\n".join(f"{field.name} = {field.value}" for field in _fields(cls))
            cls.docstring.value += f"\n\n```python\n{members}\n```"

    def on_function(self, *, func: griffe.Function, **_: object) -> None:
        """Add a table with the parameters, and simplify the signature."""
        for function in (func, *(func.overloads or ())):
            _simplify(function)
        described: griffe.Object = func
        if func.name == "__init__" and isinstance(func.parent, griffe.Class) and not func.docstring:
            described = func.parent
        if described.docstring:
            _add_table(described, "parameter", list(_parameter_rows(func, described)))


def _with_links(obj: griffe.Object, text: str) -> str:
    return ROLE.sub(lambda role: _link(obj, role[1]), text)


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


def _bases(cls: griffe.Class) -> set[str]:
    return {str(base) for owner in (cls, *cls.mro()) for base in owner.bases}


def _fields(cls: griffe.Class) -> Iterator[griffe.Attribute]:
    for name, member in cls.members.items():
        if name.startswith("_"):
            continue
        if isinstance(member, griffe.Attribute) and "property" not in member.labels:
            yield member


def _simplify(func: griffe.Function) -> None:
    """Hide ``UNSET`` and its type, and replace constants by their values."""
    for parameter in func.parameters:
        parameter.annotation = _simple(parameter.annotation)
        parameter.default = _value(func, parameter.default)


def _value(obj: griffe.Object, default: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """Return the value of a default that is a constant of the package, and dots for ``UNSET``."""
    if str(default) == "UNSET":
        return "..."
    if isinstance(default, griffe.ExprName) and default.name.isupper():
        with suppress(KeyError):  # of another package
            constant = obj.modules_collection[default.canonical_path]
            if isinstance(constant, griffe.Attribute):
                return constant.value
    return default


def _simple(annotation: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """Return the type without ``UnsetType``, which callers rarely pass, and ``Annotated``."""
    match annotation:
        case griffe.ExprBinOp(left=left, operator=operator, right=right):
            kept = [_simple(part) for part in (left, right) if str(part) != "UnsetType"]
            parts = [part for part in kept if part is not None]
            return griffe.ExprBinOp(parts[0], operator, parts[1]) if parts[1:] else parts[0]
        case griffe.ExprSubscript(left=left, slice=griffe.ExprTuple(elements=[first, *_])) if (
            str(left) == "Annotated"
        ):
            return first
        case _:
            return annotation


def _parameter_rows(func: griffe.Function, described: griffe.Object) -> Iterator[Row]:
    """Yield the parameters of a function. Their descriptions move from the docstring."""
    records = {each.name: _unpacked(func, each.annotation) for each in func.parameters}
    keys = [row for record in records.values() if record for row in _field_rows(record)]
    meanings = _take_items(described, {*records, *(row.name for row in keys)})
    for parameter in func.parameters:
        if records[parameter.name]:
            yield from (row._replace(meaning=meanings.get(row.name, row.meaning)) for row in keys)
        elif parameter.name not in {"self", "cls"}:
            meaning = meanings.get(parameter.name, "")
            yield Row(
                _prefix(parameter) + parameter.name,
                _type(parameter.annotation)
                + _unit(parameter.name, str(parameter.annotation), meaning, described),
                _default(parameter.default, parameter.kind),
                meaning,
            )


def _unpacked(func: griffe.Function, annotation: str | griffe.Expr | None) -> griffe.Class | None:
    """Return the TypedDict whose keys are keywords of a function, if it has one."""
    match annotation:
        case griffe.ExprSubscript(left=left, slice=griffe.ExprName() as name) if (
            str(left) == "Unpack"
        ):
            found = func.modules_collection[name.canonical_path]
            record = found.final_target if isinstance(found, griffe.Alias) else found
            assert isinstance(record, griffe.Class)
            return record
        case _:
            return None


def _prefix(parameter: griffe.Parameter) -> str:
    variadic = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
    return variadic.get(parameter.kind, "") if parameter.kind else ""


def _take_items(described: griffe.Object, names: set[str]) -> Mapping[str, str]:
    """Remove the items about parameters from a docstring. Return them by parameter."""
    meanings: dict[str, str] = {}

    def take(item: re.Match[str]) -> str:
        named = re.findall(r"\w+", item[1])
        if not names.issuperset(named):
            return item[0]
        meanings.update(dict.fromkeys(named, _sentence(item[2])))
        return ""

    if described.docstring:
        described.docstring.value = ITEM.sub(take, described.docstring.value)
    return meanings


def _field_rows(struct: griffe.Class) -> Iterator[Row]:
    """Yield the fields of a Struct or the keys of a TypedDict, including inherited ones."""
    is_dict = "TypedDict" in _bases(struct)
    owners = (struct, *struct.mro()) if is_dict else (*reversed(struct.mro()), struct)
    fields = {field.name: field for owner in owners for field in _fields(owner)}
    items = _take_items(struct, set(fields))
    for field in fields.values():
        text = _field_text(field) or items.get(field.name, "")
        meaning = _sentence(_with_links(struct, text))
        annotation = _simple(field.annotation)
        yield Row(
            field.name,
            _type(annotation) + _unit(field.name, str(annotation), meaning, struct),
            "not sent" if is_dict else _default(_value(struct, _field_default(field.value))),
            meaning,
        )


def _field_text(field: griffe.Attribute) -> str:
    """Return the docstring of a field, which on_class moves away."""
    return field.docstring.value if field.docstring else field.extra["reference"].get("text", "")


def _sentence(text: str) -> str:
    """Return the text of a cell, on one line."""
    line = " ".join(text.split())
    return line[:1].upper() + line[1:] if not line.startswith("None") else line


def _field_default(value: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """Return the default in ``msgspec.field(default=…)``, or what its factory returns."""
    if not isinstance(value, griffe.ExprCall) or not str(value.function).endswith("field"):
        return value
    for argument in value.arguments:
        if isinstance(argument, griffe.ExprKeyword) and argument.name == "default":
            return argument.value
        if isinstance(argument, griffe.ExprKeyword) and argument.name == "default_factory":
            factory = argument.value
            return factory.body if isinstance(factory, griffe.ExprLambda) else f"{factory}()"
    return None


def _default(value: str | griffe.Expr | None, kind: griffe.ParameterKind | None = None) -> str:
    variadic = {griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword}
    if value is None or kind in variadic:
        return "" if kind in variadic else "required"
    return "not sent" if str(value) in {"...", "UNSET"} else f"<code>{_escaped(str(value))}</code>"


def _type(annotation: str | griffe.Expr | None) -> str:
    """Return a type as HTML. Names of the package link to their place in the reference."""
    if annotation is None:
        return ""
    if isinstance(annotation, str):
        return f"<code>{_escaped(annotation)}</code>"
    return f"<code>{''.join(map(_type_part, annotation.iterate(flat=True)))}</code>"


def _type_part(part: str | griffe.Expr) -> str:
    name = _escaped(str(part))
    if isinstance(part, griffe.ExprName) and part.canonical_path.startswith(PACKAGES):
        return f'<autoref identifier="{part.canonical_path}" optional>{name}</autoref>'
    return name


def _escaped(code: str) -> str:
    """Return code as HTML that has line breaks, and in which Markdown finds nothing."""
    plain = re.sub(r"[|\[\]_*`\\]", lambda found: f"&#{ord(found[0])};", escape(code))
    return re.sub(r"&#91;|\(", r"\g<0><wbr>", plain)


def _unit(name: str, annotation: str, meaning: str, owner: griffe.Object) -> str:
    """Return the unit of a number: by its name, its description or that of its class."""
    if name in FACTORS or not re.search(r"\b(int|float)\b", annotation):
        return ""
    known = sorted(UNITS, key=len, reverse=True)
    units = [UNITS[end] for end in known if f"_{name}".endswith(end)]
    described = owner.docstring.value if owner.docstring else ""
    texts = [meaning, described if owner.is_class and "float" in annotation else ""]
    units += [found[1] for found in map(IN_UNIT.search, texts) if found]
    return f", {units[0]}" if units else ""


def _add_table(described: griffe.Object, kind: str, rows: Iterable[Row]) -> None:
    """Append a table to a docstring. It has no column without content."""
    columns = list(zip(*rows, strict=True))
    if not columns or not described.docstring:
        return
    cells = [[f"`{name}`" for name in columns[0]], *columns[1:]]
    heads = [kind, *Row._fields[1:]]
    kept = [(head, column) for head, column in zip(heads, cells, strict=True) if any(column)]
    lines = [[head for head, _ in kept], ["---"] * len(kept)]
    lines += [list(line) for line in zip(*(column for _, column in kept), strict=True)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    described.docstring.value = f"{described.docstring.value.rstrip()}\n\n{table}"
