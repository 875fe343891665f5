"""The commands beside the server: ``python -m neonctl_async.local COMMAND``."""

from typing import Final

COMMANDS: Final = {
    "export": "neonctl_async.local.commands.export_data",
    "import": "neonctl_async.local.commands.import_data",
}
"""The module of each command. It has ``main(arguments, *, prog)``, which returns the exit status.

A module is imported when its command runs.
"""
