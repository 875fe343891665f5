"""``neonctl-async``, which is ``python -m neonctl_async``, too."""

import sys

from neonctl_async._streams import exit_with

try:
    from neonctl_async.cli.app import main
except ImportError as _missing:
    if _missing.name not in {"rich", "typer"}:
        raise

    def main() -> None:
        """Name the extra that is missing."""
        exit_with(_name_the_extra)


def _name_the_extra() -> int:
    sys.stderr.write("neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n")
    return 2


if __name__ == "__main__":
    main()
