"""The package imports its names on first use, and prints no log by default."""

import logging

import pytest

import neonctl_local


@pytest.mark.parametrize("name", neonctl_local.__all__)
def test_exported_name_can_be_imported(name: str) -> None:
    assert getattr(neonctl_local, name)
    assert name in dir(neonctl_local)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'neonctl_local' has no attribute 'Local'"):
        getattr(neonctl_local, "Local")  # noqa: B009 - type checkers reject the attribute


def test_log_has_a_handler_that_writes_nothing() -> None:
    handlers = logging.getLogger("neonctl_local").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
