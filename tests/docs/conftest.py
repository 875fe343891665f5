"""Fixtures of the command line, for the pages that show commands."""

from tests.cli.conftest import cli, quick

__all__ = ["cli", "quick"]
