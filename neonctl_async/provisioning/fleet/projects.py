"""The projects of a fleet: find the existing ones, describe the missing ones. Pure: no I/O."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.models.projects import NewProject, Project
from neonctl_async.provisioning.fleet.tenants import Tenant, or_unset

T = TypeVar("T")

_ID: Final = re.compile(r"[a-z]+(-[a-z]+)+-\d{6,}")
"""The format of the project ids that Neon generates."""


class FleetProjects(msgspec.Struct, frozen=True, kw_only=True):
    """The projects of a fleet, by the value of :attr:`Tenant.project`."""

    existing: Mapping[str, Project]
    missing: Mapping[str, NewProject]
    """The projects that the fleet creates."""
    problems: Sequence[str]
    """A sentence for each project that the fleet cannot use."""


def is_project_id(text: str) -> bool:
    """Return whether ``text`` looks like a project id."""
    return _ID.fullmatch(text) is not None


def resolve(tenants: Iterable[Tenant], projects: Iterable[Project]) -> FleetProjects:
    """Find the project of each tenant by id or by exact name.

    A missing project is a new project if a tenant gives its region, and otherwise a problem. A name
    that several projects share is also a problem.
    """
    by_text: dict[str, list[Tenant]] = {}
    for tenant in tenants:
        by_text.setdefault(tenant.project, []).append(tenant)
    found: dict[str, dict[str, Project]] = {text: {} for text in by_text}
    for project in projects:
        for text in {project.id, project.name} & found.keys():
            found[text][project.id] = project
    existing: dict[str, Project] = {}
    missing: dict[str, NewProject] = {}
    problems: list[str] = []
    for text, matches in found.items():
        try:
            if matches:
                existing[text] = _only(text, matches)
            else:
                missing[text] = _new(text, by_text[text])
        except ValueError as error:
            problems.append(str(error))
    return FleetProjects(existing=existing, missing=missing, problems=problems)


def _only(text: str, matches: Mapping[str, Project]) -> Project:
    if len(matches) > 1:
        raise ValueError(
            f"{len(matches)} projects match {shorten(text)}: {', '.join(sorted(matches))}; "
            "expected one: use the id, or rename or delete the other"
        )
    [project] = matches.values()
    return project


def _new(text: str, tenants: Sequence[Tenant]) -> NewProject:
    if is_project_id(text):
        raise ValueError(f"no project has the id {text}: correct the id, or use a name")
    region = _common(text, "region", (tenant.region for tenant in tenants))
    if region is None:
        raise ValueError(
            f"no project has the name {shorten(text)}: create it, or set the region of its tenants"
        )
    pg_version = _common(text, "pg_version", (tenant.pg_version for tenant in tenants))
    return {"name": text, "region_id": region, "pg_version": or_unset(pg_version)}


def _common(text: str, field: str, values: Iterable[T | None]) -> T | None:
    """Return the value that tenants give to a field, or None. Raise ValueError if they disagree."""
    found = {value for value in values if value is not None}
    if len(found) > 1:
        listed = " and ".join(sorted(map(str, found)))
        raise ValueError(f"the tenants of {shorten(text)} have the {field} {listed}: expected one")
    return next(iter(found), None)
