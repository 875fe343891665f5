"""Checks of the settings of a project that the published description does not make."""

from msgspec import UNSET

from neonctl_local.api.request import bodies
from neonctl_local.engine import admission
from neonctl_local.errors import invalid


def check(settings: bodies.ProjectSettings) -> None:
    """Raise 400 that names the first setting with an invalid value."""
    if settings.allowed_ips is not UNSET and settings.allowed_ips.ips is not UNSET:
        for text in settings.allowed_ips.ips:
            _check_address(text)


def _check_address(text: str) -> None:
    try:
        admission.allowed_range(text)
    except ValueError:
        raise invalid(
            f"invalid request: project.settings.allowed_ips.ips: {text!r} is invalid: expected an "
            "address like 192.0.2.1, a network like 192.0.2.0/24 or a range like "
            "192.0.2.1-192.0.2.9"
        ) from None
