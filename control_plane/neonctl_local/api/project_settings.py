"""Settings of projects and computes: the libraries that Postgres can preload, and checks.

The checks cover what the published description of the API leaves out.
"""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.engine import computes
from neonctl_local.engine.allowed_addresses import AllowedIps, allowed_range
from neonctl_local.engine.preload_libraries import DEFAULTS, available
from neonctl_local.errors import invalid, unprocessable
from neonctl_local.postgres.settings import refusal
from neonctl_local.storage.tables import Project
from neonctl_local.storage.transactions import Transaction

_DETAILS: Final = {
    "pg_stat_statements": ("1.11", "Statistics of planning and execution"),
    "timescaledb": ("2.17.1", "Time-series data"),
    "pg_cron": ("1.6", "Jobs on a schedule"),
    "pg_partman_bgw": ("5.1.0", "Maintenance of partitions in the background"),
}
"""The version and the description of each library."""


class ShownSettings(bodies.ProjectSettings, frozen=True):
    """The settings of a project as Neon shows them, with defaults for missing settings."""

    allowed_ips: AllowedIps = AllowedIps()
    enable_logical_replication: bool = False
    maintenance_window: bodies.MaintenanceWindow = bodies.MaintenanceWindow(
        weekdays=[5], start_time="07:00", end_time="08:00"
    )
    block_public_connections: bool = False
    block_vpc_connections: bool = False
    hipaa: bool = False


class ShownDefaults(bodies.EndpointDefaults, frozen=True):
    """The default settings of computes as Neon shows them, with values for missing settings.

    Older database files can contain sizes that requests cannot set.
    """

    autoscaling_limit_min_cu: float = computes.MINIMUM_CU
    autoscaling_limit_max_cu: float = 0.0
    suspend_timeout_seconds: int = 0


def shown(project: Project) -> Json:
    """Return the settings of a project, and those of its new computes, as Neon shows them."""
    defaults = default_computes(project)
    settings = msgspec.json.decode(project.settings, type=ShownSettings)
    return {"settings": settings, "default_endpoint_settings": defaults}


def default_computes(project: Project) -> ShownDefaults:
    """Return the settings of new computes. The default maximum size is the minimum size."""
    chosen = msgspec.json.decode(project.default_endpoint_settings, type=ShownDefaults)
    largest = chosen.autoscaling_limit_max_cu or chosen.autoscaling_limit_min_cu
    return replace(chosen, autoscaling_limit_max_cu=largest)


def check_default_sizes(project: Project) -> None:
    """Raise 400 if the default sizes of a project are not valid for a compute."""
    defaults = default_computes(project)
    computes.check_sizes(defaults.autoscaling_limit_min_cu, defaults.autoscaling_limit_max_cu)


def list_libraries(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/available_preload_libraries``: list the installed libraries."""
    project = access.project(tx, call)
    libraries = [_library(name) for name in available(tx, project.pg_version)]
    return respond({"libraries": libraries})


def check_libraries(
    tx: Transaction, pg_version: int, setting: bodies.PreloadLibraries | UnsetType, field: str
) -> None:
    """Raise 400, naming the field, if a setting enables a library that is not available."""
    if setting is UNSET or setting.enabled_libraries is UNSET:
        return
    known = available(tx, pg_version)
    for name in setting.enabled_libraries:
        if name not in known:
            raise invalid(
                f"invalid request: {field}.preload_libraries.enabled_libraries: {name!r} is not "
                f"available for Postgres {pg_version}: expected {' or '.join(known) or 'none'}"
            )


def check(tx: Transaction, settings: bodies.ProjectSettings, pg_version: int) -> None:
    """Raise 400 if a setting is invalid, naming the first one."""
    check_libraries(tx, pg_version, settings.preload_libraries, "project.settings")
    if settings.allowed_ips is not UNSET:
        for text in settings.allowed_ips.ips:
            _check_address(text)


def check_computes(settings: bodies.EndpointSettings | bodies.EndpointDefaults, field: str) -> None:
    """Raise 400 if a Postgres setting is not allowed, naming the first one."""
    if settings.pg_settings is UNSET:
        return
    for name, value in settings.pg_settings.items():
        if reason := refusal(name, value):
            raise invalid(f"invalid request: {field}.pg_settings: {reason}")


def enables_replication(settings: bodies.ProjectSettings, before: str) -> bool:
    """Return whether a change enables logical replication. Raise 422 if the change disables it."""
    was_enabled = msgspec.json.decode(before, type=bodies.ProjectSettings)
    is_enabled = settings.enable_logical_replication
    if is_enabled is UNSET or is_enabled == (was_enabled.enable_logical_replication is True):
        return False
    if not is_enabled:
        raise unprocessable("logical replication cannot be disabled once it has been enabled")
    return True


def _check_address(text: str) -> None:
    try:
        allowed_range(text)
    except ValueError:
        raise invalid(
            f"invalid request: project.settings.allowed_ips.ips: {text!r} is invalid: expected an "
            "address like 192.0.2.1, a network like 192.0.2.0/24 or a range like "
            "192.0.2.1-192.0.2.9"
        ) from None


def _library(name: str) -> Json:
    version, description = _DETAILS[name]
    return {
        "library_name": name,
        "description": description,
        "is_default": name in DEFAULTS,
        "is_experimental": False,
        "version": version,
    }
