"""What everyday calls take in Python, the command line takes too, or its page says why not."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from typer.core import TyperGroup

from neonctl_async.cli.app import load
from neonctl_async.provisioning.branch_objects import Endpoints
from neonctl_async.provisioning.branches import Branches
from neonctl_async.resources.projects import Projects
from neonctl_async.resources.snapshots import Snapshots
from tests.support.pages import TEXTS

EVERYDAY = re.compile(
    r"create|ensure|update|set_as_default|set_schedule|reset_from_parent|restore|finalize_restore|"
    r"delete|recover|start|suspend|restart"
)
RESOURCES: dict[str, type] = {
    "projects": Projects,
    "branches": Branches,
    "endpoints": Endpoints,
    "snapshots": Snapshots,
}
COMMANDS = {
    "branches.update": ["branches rename", "branches protect", "branches set-expiration"],
    "branches.set_as_default": ["branches set-default"],
    "branches.reset_from_parent": ["branches reset"],
    "branches.finalize_restore": ["snapshots finalize"],
    "snapshots.set_schedule": ["snapshots schedule"],
}
"""The commands of methods, where they are not named after the method."""
OPTIONS = {
    "autoscaling_limit_max_cu": "--cu",
    "autoscaling_limit_min_cu": "--cu",
    "branch_id": "--branch",
    "database_name": "--database",
    "finalize_restore": "--finalize",
    "history_retention_seconds": "--history-retention",
    "init_source": "--schema-only",
    "lsn": "--at",
    "org_id": "--org",
    "parent_id": "--parent",
    "parent_lsn": "--at",
    "parent_timestamp": "--at",
    "region_id": "--region",
    "retention_seconds": "--retention",
    "role_name": "--role",
    "source_branch_id": "--source",
    "source_lsn": "--at",
    "source_timestamp": "--at",
    "suspend_timeout_seconds": "--suspend-timeout",
    "target_branch_id": "--target-branch",
    "timestamp": "--at",
    "branches.update protected": "--off",
    "branches.update name": "name",
}
"""The options of parameters, where they are not named after the parameter."""

METHODS = {
    f"{resource}.{name}": method
    for resource, kind in RESOURCES.items()
    for name, method in inspect.getmembers(kind, inspect.isfunction)
    if EVERYDAY.fullmatch(name)
}


def excused() -> set[str]:
    """Return the names that the page lists, with the reason, as parts without an option."""
    section = TEXTS["docs/command-line.md"].partition("### Without an option\n")[2]
    rows = re.findall(r"^\|([^|]*`[^|]*)\|", section.partition("\n#")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def parameters(method: Callable[..., object]) -> Iterator[str]:
    """Yield the keywords of a method. Those that are records are replaced by their fields."""
    hints = get_type_hints(method)
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            [settings] = get_args(hints[name])
            for field, kind in get_type_hints(settings).items():
                yield from flat(field, kind)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            yield from ["wait"] if name == "wait" else flat(name, hints[name])


def flat(name: str, kind: Any) -> Iterator[str]:
    records = [
        one for one in leaves(kind) if isinstance(one, type) and issubclass(one, msgspec.Struct)
    ]
    if not records:
        yield name
    for record in records:
        for field in msgspec.structs.fields(record):
            yield from flat(f"{name}.{field.name}", field.type)


def leaves(kind: Any) -> Iterator[Any]:
    if not get_args(kind):
        yield kind
    for part in get_args(kind):
        yield from leaves(part)


def options(command: str) -> set[str]:
    """Return the options and the arguments of a command."""
    group, _, name = command.partition(" ")
    loaded = load(group)
    assert isinstance(loaded, TyperGroup)
    return {option for each in loaded.commands[name].params for option in each.opts}


def missing(method: str) -> Iterator[str]:
    """Yield the parameters of a method that its commands have no option for."""
    commands = COMMANDS.get(method, [method.replace(".", " ")])
    found = {option for command in commands for option in options(command)}
    for path in parameters(METHODS[method]):
        name = path.rpartition(".")[2]
        option = (
            OPTIONS.get(f"{method} {name}") or OPTIONS.get(name) or f"--{name.replace('_', '-')}"
        )
        if option not in found:
            yield path


@pytest.mark.parametrize("method", sorted(METHODS.keys() - excused()))
def test_each_parameter_has_an_option(method: str) -> None:
    without_reason = [path for path in missing(method) if excused().isdisjoint(path.split("."))]
    assert not without_reason, (
        "add an option, or a reason to 'Without an option' in docs/command-line.md"
    )


def test_each_reason_is_needed() -> None:
    needed = {
        part
        for method in METHODS.keys() - excused()
        for path in missing(method)
        for part in path.split(".")
    }
    assert excused() <= needed | METHODS.keys()


def test_each_other_name_is_needed() -> None:
    assert COMMANDS.keys() <= METHODS.keys()
