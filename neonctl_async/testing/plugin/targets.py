"""The servers that tests can run against: a local control plane, or the API of Neon."""

from collections.abc import Mapping
from typing import NamedTuple


class ServerURLs(NamedTuple):
    """The URLs of a local control plane and of its control server. The repr shows no token."""

    base_url: str
    control_url: str
    control_token: str

    def __repr__(self) -> str:
        return f"<ServerURLs {self.base_url}>"


class CloudAccount:
    """An account at Neon and the project of the tests, as read from the environment once.

    ``base_url`` is None if ``NEON_API_HOST`` is not set. The repr shows no key. Raise ValueError
    if ``NEON_API_KEY`` or ``NEON_PROJECT_ID`` is missing.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        required = ("NEON_API_KEY", "NEON_PROJECT_ID")
        missing = [name for name in required if not environment.get(name)]
        if missing:
            raise ValueError(f"--neon-cloud needs {' and '.join(missing)} to be set")
        self.api_key: str = environment["NEON_API_KEY"]
        self.project_id: str = environment["NEON_PROJECT_ID"]
        self.base_url: str | None = environment.get("NEON_API_HOST") or None
