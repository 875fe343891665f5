"""A received request. Clients in other processes import this module without the server."""

from typing import NamedTuple


class ServedRequest(NamedTuple):
    """A received request: its method, its path relative to the base URL, and the status sent.

    The status is 0 if the connection was closed without a response.
    """

    method: str
    path: str
    status: int
