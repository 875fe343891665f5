"""``link``: a new link that signs in to the console of a running local control plane."""

import os
import sys
from collections.abc import Sequence
from typing import Final

from neonctl_local.arguments import Parser
from neonctl_local.commands.console import CONSOLE, CommandError, Console
from neonctl_local.commands.records import Link

_DESCRIPTION: Final = (
    "Print a link that signs you in to the console of a running local control plane, which the "
    "environment variables NEON_API_HOST and NEON_API_KEY name. NEON_API_KEY must be a personal "
    "key. The link works once, within 12 hours."
)


def main(arguments: Sequence[str], *, prog: str) -> int:
    """Run the command and return its exit status."""
    Parser(prog=f"{prog} link", description=_DESCRIPTION).parse_args(arguments[1:])
    try:
        console = Console.from_environment(os.environ)
        link = console.request("POST", "/console_links", Link, base=CONSOLE)
    except CommandError as error:
        sys.stderr.write(f"{prog}: {error}\n")
        return 1
    sys.stdout.write(f"{console.origin}{link.path}\n")
    return 0
