"""The libraries that Postgres can preload."""

from typing import Final

from msgspec import UNSET, UnsetType

from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.engine.preload_libraries import DEFAULTS, available
from neonctl_local.errors import invalid
from neonctl_local.storage.transactions import Transaction

_DETAILS: Final = {
    "pg_stat_statements": ("1.11", "Statistics of planning and execution"),
    "timescaledb": ("2.17.1", "Time-series data"),
    "pg_cron": ("1.6", "Jobs on a schedule"),
    "pg_partman_bgw": ("5.1.0", "Maintenance of partitions in the background"),
}
"""The version and the description of each library."""


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/available_preload_libraries``: the installed ones."""
    project = access.project(tx, call)
    libraries = [_library(name) for name in available(tx, project.pg_version)]
    return respond({"libraries": libraries})


def check(
    tx: Transaction, pg_version: int, setting: bodies.PreloadLibraries | UnsetType, field: str
) -> None:
    """Raise 400 that names the field if a setting enables a library that is not available."""
    if setting is UNSET or setting.enabled_libraries is UNSET:
        return
    known = available(tx, pg_version)
    for name in setting.enabled_libraries:
        if name not in known:
            raise invalid(
                f"invalid request: {field}.preload_libraries.enabled_libraries: {name!r} is not "
                f"available for Postgres {pg_version}: expected {' or '.join(known) or 'none'}"
            )


def _library(name: str) -> Json:
    version, description = _DETAILS[name]
    return {
        "library_name": name,
        "description": description,
        "is_default": name in DEFAULTS,
        "is_experimental": False,
        "version": version,
    }
