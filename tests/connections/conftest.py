"""Certificates of servers."""

import ssl

import pytest
import trustme

from tests.support.tls import certified


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """The TLS context of a server, with a certificate that no client trusts."""
    return certified(authority, "somewhere-else.example.com")
