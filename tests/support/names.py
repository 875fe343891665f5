"""Host names that resolve in the process of the tests."""

import socket
from typing import Any

import pytest


def resolve(monkeypatch: pytest.MonkeyPatch, name: str, address: str) -> None:
    """Let a name, and all names below it, resolve to an address, or to nothing if that is empty."""
    real = socket.getaddrinfo

    def lookup(host: str, *args: Any, **kwargs: Any) -> Any:
        found = address if f".{host}".endswith(f".{name}") else host
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(found, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
