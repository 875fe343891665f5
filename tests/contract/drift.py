"""Prints what changed in the newest description of the API, as a list of work.

``make drift`` installs the newest packages into a folder, and passes the folder to this module. The
exit status is 0 without changes, 1 with changes, and 2 if a description cannot be read.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tests.contract.changes import Change, Part, changes
from tests.contract.description import FOLDER, OLDER_PACKAGE, Description
from tests.contract.owners import Owners
from tests.contract.typescript import SDK, TYPES, UnknownFormError

PINS = {SDK: "SDK", OLDER_PACKAGE: "DESCRIPTION"}
"""The variables of the Makefile with the versions of the packages."""

_NEW_ENDPOINT = "new endpoint: add a method"
_WORK = {
    ("-", ""): "endpoint is gone: remove its method, or list it in UNPUBLISHED in known.py",
    ("+", "deprecated"): "deprecated endpoint: remove its method",
    ("-", "deprecated"): "endpoint is no longer deprecated: add a method",
    ("~", "stability"): "stability has changed: change the last sentence of the docstring",
    ("+", "parameter"): "new query parameter: add a keyword",
    ("+", "body"): "the endpoint now accepts a body: send it",
    ("+", "body field"): "new field of a body: add a keyword, or a field to its Struct",
    ("+", "response field"): "new field of a response: add it to its Struct",
    ("+", "member"): "new member of an enumeration: add it",
    ("+", "status"): "new status of success: check that the method decodes its response",
    ("+", "error status"): "new error status: check its exception in errors.py",
    ("~", "type"): "another type or limit: change the annotation",
    ("-", "part"): "gone: remove it from the library",
}
"""The work for each kind of change, in the order of the list."""


class DriftError(Exception):
    """The folder has no description that can be compared."""


def work(changed: Iterable[Change], before: Description, after: Description) -> Iterator[str]:
    """Yield the lines of the list: a heading for each kind of work, then one line per place.

    Changes that many endpoints share, such as a new member of an enumeration, have one line.
    """
    kept = list(_without_needless(changed, after))
    old, new = (Owners.of_client(description) for description in (before, after))
    groups: dict[str, dict[str, list[str]]] = {text: defaultdict(list) for text in _headings()}
    for change in kept:
        owners = old if change.sign == "-" else new
        groups[_heading(change)][_place(change, owners)].append(owners.method(change.endpoint))
    for heading, places in groups.items():
        if places:
            yield f"{heading[0].upper()}{heading[1:]}"
            yield from (f"  {place}{_users(place, users)}" for place, users in places.items())


def _headings() -> list[str]:
    return [_NEW_ENDPOINT, *_WORK.values()]


def _heading(change: Change) -> str:
    part = change.part or Part("")
    if change == Change("+", change.endpoint):
        return _NEW_ENDPOINT
    kind = "member" if part.value else part.kind
    if (change.sign, kind) in _WORK:
        return _WORK[change.sign, kind]
    return _WORK["-", "part"] if change.sign == "-" else _WORK["~", "type"]


def _place(change: Change, owners: Owners) -> str:
    """Return the place in the library that changes, such as ``Branch.slug (string)``."""
    part = change.part
    if part is None:
        return change.endpoint
    owner = owners.owner(change.endpoint, part)
    is_class = owner != owners.method(change.endpoint)
    if part.value:
        text = f"{owner}: {part.value}" if is_class else f"{owner}: {part.name} = {part.value}"
    elif is_class:
        text = owner
    else:
        text = f"{owner}: {part}" if part.name else owner
    return f"{text} ({change.facts})" if change.facts else text


def _users(place: str, methods: list[str]) -> str:
    """Return the endpoints that a change affects, unless the place names the only one."""
    names = list(dict.fromkeys(methods))
    if len(names) > 1:
        return f": {len(names)} endpoints"
    return "" if place.startswith(names[0]) else f": {names[0]}"


def _without_needless(changed: Iterable[Change], after: Description) -> Iterator[Change]:
    """Leave out changes within new or removed objects, and of deprecated endpoints."""
    deprecated = {str(endpoint) for endpoint in after.endpoints if endpoint.deprecated}
    wholes: set[tuple[str, str, Part]] = set()
    for change in changed:
        part = change.part
        if part is None:
            if change.sign == "-" or change.endpoint not in deprecated:
                yield change
        elif part.kind == "deprecated":
            yield change
        elif change.endpoint not in deprecated:
            names = part.name.split(".")
            ends = range(1, len(names) + (1 if part.value else 0))
            parents = (Part(part.kind, ".".join(names[:end])) for end in ends)
            if not any((change.sign, change.endpoint, parent) in wholes for parent in parents):
                yield change
            wholes.add((change.sign, change.endpoint, part))


def read(folder: Path) -> Description:
    """Return the description of the packages in a folder. Raise DriftError if it is unreadable."""
    if not (folder / TYPES).exists():
        raise DriftError(f"{folder} is incomplete: it has no {TYPES}. Run make drift again.")
    try:
        return Description.newest(folder)
    except OSError as error:
        raise DriftError(f"{folder} is incomplete: {error}") from error
    except UnknownFormError as error:
        reason = str(error)
    except (LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise DriftError(
        f"The description in {folder} has an unknown form: {reason}. "
        "Extend tests/contract/typescript.py or derived.py."
    )


def version(folder: Path, package: str) -> str:
    """Return the version of an installed package."""
    file = folder / "node_modules" / package / "package.json"
    try:
        return str(msgspec.json.decode(file.read_bytes())["version"])
    except OSError as error:
        raise DriftError(f"{folder} is incomplete: {error}") from error


def report(newest: Path, pinned: Path = FOLDER) -> tuple[list[str], int]:
    """Return the lines to print and the exit status."""
    try:
        versions = {name: (version(pinned, name), version(newest, name)) for name in PINS}
        after, before = read(newest), read(pinned)
        found = list(work(changes(before, after), before, after))
    except DriftError as error:
        return [str(error)], 2
    except RecursionError:
        return ["A type of the newest SDK contains itself. Extend tests/contract/paths.py."], 2
    lines = [f"{name} {old}, newest {new}" for name, (old, new) in versions.items()]
    pins = [f"{PINS[name]} = {new}" for name, (old, new) in versions.items() if old != new]
    step = f"{' and '.join(pins)} in the Makefile"
    if not found:
        return [*lines, f"No changes. Set {step}." if pins else "No changes."], 0
    return [
        *lines,
        *found,
        f'Next: set {step}, and follow "How to add an endpoint" in docs/contributing.md.',
    ], 1


def main() -> None:
    """Print the report, and exit with its status."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m tests.contract.drift FOLDER\n")
        sys.exit(2)
    lines, status = report(Path(sys.argv[1]))
    print(*lines, sep="\n", file=sys.stderr if status == 2 else sys.stdout)
    sys.exit(status)


if __name__ == "__main__":
    main()
