"""The fields of API records that pages show."""

import msgspec


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project in a list."""

    id: str
    name: str
    region_id: str
    pg_version: int
    created_at: str
    org_id: str | None = None


class Pagination(msgspec.Struct, frozen=True):
    """The cursor of the next page."""

    cursor: str = ""


class Projects(msgspec.Struct, frozen=True):
    """A page of projects."""

    projects: list[Project]
    pagination: Pagination = Pagination()


class ProjectCreated(msgspec.Struct, frozen=True):
    """The response to the creation of a project."""

    project: Project
