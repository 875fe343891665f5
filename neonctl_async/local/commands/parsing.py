"""The parser of all commands of the local control plane."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class Parser(argparse.ArgumentParser):
    """A parser whose help fails if it cannot be written. argparse would exit with status 0."""

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Write the help text. Raise OSError if that fails."""
        (file or sys.stdout).write(self.format_help())
