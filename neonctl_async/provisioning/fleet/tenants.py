"""A tenant: a branch that a fleet should have, and the settings of the branch."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._internal import shorten
from neonctl_async.models.base import Timestamp
from neonctl_async.models.branches import EnsureSettings, InitSource
from neonctl_async.models.endpoints import EndpointSpec, EndpointType

T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(min_length=1)]
Size = Annotated[float, msgspec.Meta(ge=0.25, le=1024)]

EXPECTED: Final[Mapping[str, str]] = {
    "project": "the id or the name of a project",
    "branch": "the name of a branch",
    "parent": "the name or the id of a branch",
    "init_source": "parent-data or schema-only",
    "protected": "true or false",
    "expires_at": "a date and time with a time zone, such as 2027-01-31T12:00:00Z",
    "compute": "true or false",
    "compute_name": "a text of 1 to 64 characters",
    "min_cu": "a number from 0.25 to 1024",
    "max_cu": "a number from 0.25 to 1024",
    "suspend_timeout_seconds": "a whole number from -1 to 604800",
    "database": "the name of a database",
    "role": "the name of a role",
    "region": "the id of a region, such as aws-us-east-2",
    "pg_version": "a major version of Postgres, such as 17",
}
"""The expected value of each field, for error messages."""

COMPUTE_FIELDS: Final[Mapping[str, str]] = {
    "compute_name": "name",
    "min_cu": "autoscaling_limit_min_cu",
    "max_cu": "autoscaling_limit_max_cu",
    "suspend_timeout_seconds": "suspend_timeout_seconds",
}
"""The API's names for the settings of the compute."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that a fleet should have.

    A field that is None is not sent when the branch is created, and not compared when the branch
    exists. Raises ValueError for an invalid value.
    """

    project: Text
    """The id of the project, or its exact name."""
    branch: Text
    """The name of the branch."""
    parent: Text | None = None
    """The parent branch, by name or id; by default, the project's default branch. It may be the
    branch of another tenant."""
    init_source: InitSource | None = None
    protected: bool | None = None
    expires_at: Timestamp | None = None
    """The time at which Neon deletes the branch."""
    compute: bool = True
    """True for a branch with a ``read_write`` compute."""
    compute_name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    """The name of the compute."""
    min_cu: Size | None = None
    """The smallest size of the compute, in compute units."""
    max_cu: Size | None = None
    """The largest size of the compute, in compute units."""
    suspend_timeout_seconds: Annotated[int, msgspec.Meta(ge=-1, le=604800)] | None = None
    """The idle time before Neon suspends the compute. 0 means Neon's default, and -1 means
    never."""
    database: Text | None = None
    """The database of the connection URI; by default, the only database of the branch."""
    role: Text | None = None
    """The role of the connection URI; by default, the owner of the database."""
    region: Text | None = None
    """The region of the project. If it is set, the fleet creates a missing project."""
    pg_version: Annotated[int, msgspec.Meta(ge=10, le=99)] | None = None
    """The project's major Postgres version."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None or name in _REQUIRED:
                check(name, value)
        sizes = [size for size in (self.min_cu, self.max_cu) if size is not None]
        if sizes != sorted(sizes):
            raise ValueError(f"min_cu is {self.min_cu:g}: expected at most max_cu, {self.max_cu:g}")
        if not self.compute and any(getattr(self, name) is not None for name in COMPUTE_FIELDS):
            raise ValueError(f"compute is False: expected True, or no {', '.join(COMPUTE_FIELDS)}")

    def __str__(self) -> str:
        return f"{self.project}/{self.branch}"

    @property
    def branch_settings(self) -> EnsureSettings:
        """The settings of the branch. Unset settings are neither sent nor compared."""
        return {
            "init_source": or_unset(self.init_source),
            "protected": or_unset(self.protected),
            "expires_at": or_unset(self.expires_at),
            "endpoints": self.endpoints,
        }

    @property
    def endpoints(self) -> list[EndpointSpec]:
        """The computes to create with the branch. Neon does not accept names for them."""
        if not self.compute:
            return []
        given = {api: value for api, value in self.compute_settings.items() if api != "name"}
        return [EndpointSpec(type=EndpointType.READ_WRITE, **given)]

    @property
    def compute_settings(self) -> dict[str, Any]:
        """The given settings of the compute, by their names in the API."""
        settings = {api: getattr(self, name) for name, api in COMPUTE_FIELDS.items()}
        return {api: value for api, value in settings.items() if value is not None}


_REQUIRED = ("project", "branch", "compute")


@cache
def _types() -> dict[str, type[object]]:
    return {field.name: field.type for field in msgspec.structs.fields(Tenant)}


def check(name: str, value: object, *, strict: bool = True) -> object:
    """Return the value of a field, converted to its type. Raise ValueError if it is invalid.

    Unless ``strict`` is set, a string such as ``"0.5"`` is converted to a number.
    """
    try:
        converted = msgspec.convert(value, _types()[name], strict=strict)
    except msgspec.ValidationError:
        shown = value.isoformat() if isinstance(value, datetime) else shorten(value)
        raise ValueError(f"{name} is {shown}: expected {EXPECTED[name]}") from None
    return converted


def or_unset(value: T | None) -> T | UnsetType:
    """Return the value of a parameter, or UNSET for None."""
    return UNSET if value is None else value
