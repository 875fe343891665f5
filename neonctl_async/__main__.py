"""``neonctl-async``, which is ``python -m neonctl_async``, too."""

import sys

try:
    from neonctl_async.cli.app import main
except ImportError as _missing:
    if _missing.name not in {"rich", "typer"}:
        raise

    def main() -> None:
        """Say what is missing."""
        sys.stderr.write("neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
