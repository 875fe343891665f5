"""``python -m tools.chromium``: print the path of Chromium, or how to install it.

The tests of the console run in this Chromium, and the pictures of the console are taken in it.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Final

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one draws no windows, so the tests take a third of the time."""
ARGUMENTS: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    # A request to another host fails at once, without a query of a name server.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
"""The arguments of Chromium in tests and for pictures. Playwright adds further ones."""


class ChromiumMissingError(Exception):
    """This machine has no Chromium."""


def find_chromium(environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of Chromium: the variable ``CHROMIUM``, or a program in ``PATH``.

    Raises :exc:`ChromiumMissingError`.
    """
    chosen = environment.get("CHROMIUM")
    for name in (chosen,) if chosen else NAMES:
        if path := shutil.which(name, path=environment.get("PATH", os.defpath)):
            return path
    problem = f"CHROMIUM={chosen} is not a program" if chosen else "this machine has no Chromium"
    raise ChromiumMissingError(
        f"{problem}: install Chromium (apt-get install chromium-headless-shell), "
        "or set CHROMIUM to its path"
    )


if __name__ == "__main__":
    try:
        print(find_chromium())
    except ChromiumMissingError as error:
        sys.exit(str(error))
