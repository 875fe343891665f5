"""The commands of ``python -m neonctl_local`` that do not start a server.

Each module has a function ``main(arguments, *, prog)``, which returns the exit status.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

COMMANDS: Final[dict[str, str]] = {
    "export": "neonctl_local.commands.export_data",
    "fault": "neonctl_local.commands.faults",
    "import": "neonctl_local.commands.import_data",
    "link": "neonctl_local.commands.link",
    "member": "neonctl_local.commands.people",
    "org": "neonctl_local.commands.people",
    "user": "neonctl_local.commands.people",
}
"""The module of each command, by the name of the command."""


def run(arguments: Sequence[str], *, prog: str) -> int:
    """Run the command that the first argument names, and return its exit status."""
    status: int = import_module(COMMANDS[arguments[0]]).main(arguments, prog=prog)
    return status
