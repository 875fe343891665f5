"""The libraries that Postgres can preload."""

from typing import Final

from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.storage.transactions import Transaction


def _library(name: str, version: str, description: str, *, default: bool = False) -> Json:
    return {
        "library_name": name,
        "description": description,
        "is_default": default,
        "is_experimental": False,
        "version": version,
    }


LIBRARIES: Final = (
    _library("pg_stat_statements", "1.11", "Statistics of planning and execution", default=True),
    _library("timescaledb", "2.17.1", "Time-series data"),
    _library("pg_cron", "1.6", "Jobs on a schedule"),
    _library("pg_partman_bgw", "5.1.0", "Maintenance of partitions in the background"),
)
"""The available libraries. They are the same for all versions of Postgres."""


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/available_preload_libraries``."""
    access.project(tx, call)
    return respond({"libraries": LIBRARIES})
