"""The ``neonctl-async`` command, also available as ``python -m neonctl_async``."""

import atexit
import gc
import sys

from neonctl_async.cli.streams import exit_with


def main() -> None:
    """Run the command line and exit with its exit code."""
    atexit.register(gc.freeze)  # else Python searches its memory for garbage before it exits
    exit_with(_run)


def _run() -> int | None:
    try:
        from neonctl_async.cli.app import run  # noqa: PLC0415 - so that Ctrl-C during the import exits like one during a command
    except ImportError as missing:
        if missing.name not in {"rich", "typer"}:
            raise
        sys.stderr.write("neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n")
        return 2
    return run()


if __name__ == "__main__":
    main()
