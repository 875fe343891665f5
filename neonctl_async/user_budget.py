"""The rate budget that a user's programs share by default."""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from neonctl_async.config import RateBudget, is_loopback
from neonctl_async.errors import ConfigurationError
from neonctl_async.models.secret import Secret

BUDGET_VARIABLE = "NEON_RATE_BUDGET"
"""The environment variable with the URL of the shared budget, or ``off``."""
FILE_NAME = "rate-budget.db"

_logger = logging.getLogger(__name__)


def default_budget(
    environment: Mapping[str, str], base_url: str, *, fallback_parts: int = 4
) -> RateBudget:
    """Return the budget that all of the current user's programs on this machine share.

    ``NEON_RATE_BUDGET`` names another store, or is ``off``. Without a store, and for a base URL on
    this machine, the budget is not shared. Raises ConfigurationError if the variable contains an
    invalid URL.
    """
    url = Secret(environment.get(BUDGET_VARIABLE, "").strip())
    if url.reveal() == "off":
        return RateBudget()
    if url:
        try:
            return RateBudget.shared(url, fallback_parts=fallback_parts)
        except ConfigurationError as error:
            raise ConfigurationError(f"{BUDGET_VARIABLE}: {error}, or off") from None
    if is_loopback(urlsplit(base_url).hostname or ""):
        return RateBudget()
    try:
        folder = state_folder(environment)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{folder} cannot be written")
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        _logger.info("the rate budget is not shared with other programs: %s", error)
        return RateBudget()
    return RateBudget.shared(f"sqlite:///{folder / FILE_NAME}", fallback_parts=fallback_parts)


def state_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the operating system's usual folder for the state of this library.

    Raises RuntimeError if the home directory is unknown.
    """
    if platform == "win32":
        base = environment.get("LOCALAPPDATA", "")
        parent = Path(base) if base else Path.home() / "AppData" / "Local"
    elif platform == "darwin":
        parent = Path.home() / "Library" / "Application Support"
    else:
        base = environment.get("XDG_STATE_HOME", "")
        # A relative XDG_STATE_HOME is invalid (XDG Base Directory Specification).
        parent = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    return parent / "neonctl-async"
