"""Checks of the settings of projects and computes that the published description does not make."""

import msgspec
from msgspec import UNSET

from neonctl_local.api import preload_libraries
from neonctl_local.api.request import bodies
from neonctl_local.engine import admission
from neonctl_local.errors import invalid, unprocessable
from neonctl_local.postgres.settings import refusal
from neonctl_local.storage.transactions import Transaction


def check(tx: Transaction, settings: bodies.ProjectSettings, pg_version: int) -> None:
    """Raise 400 that names the first setting with an invalid value."""
    preload_libraries.check(tx, pg_version, settings.preload_libraries, "project.settings")
    if settings.allowed_ips is not UNSET and settings.allowed_ips.ips is not UNSET:
        for text in settings.allowed_ips.ips:
            _check_address(text)


def check_computes(settings: bodies.EndpointSettings | bodies.EndpointDefaults, field: str) -> None:
    """Raise 400 that names the first setting of Postgres that a project may not choose."""
    if settings.pg_settings is UNSET:
        return
    for name, value in settings.pg_settings.items():
        if reason := refusal(name, value):
            raise invalid(f"invalid request: {field}.pg_settings: {reason}")


def enables_replication(settings: bodies.ProjectSettings, before: str) -> bool:
    """Return whether logical replication is enabled now. Raise 422 if it is disabled, as Neon."""
    was_enabled = msgspec.json.decode(before, type=bodies.ProjectSettings)
    is_enabled = settings.enable_logical_replication
    if is_enabled is UNSET or is_enabled == (was_enabled.enable_logical_replication is True):
        return False
    if not is_enabled:
        raise unprocessable("logical replication cannot be disabled once it has been enabled")
    return True


def _check_address(text: str) -> None:
    try:
        admission.allowed_range(text)
    except ValueError:
        raise invalid(
            f"invalid request: project.settings.allowed_ips.ips: {text!r} is invalid: expected an "
            "address like 192.0.2.1, a network like 192.0.2.0/24 or a range like "
            "192.0.2.1-192.0.2.9"
        ) from None
