"""``neonctl-async local``: the same command as ``python -m neonctl_async.local``."""

import typer

from neonctl_async.local.__main__ import main


def serve(context: typer.Context) -> None:
    """Serve a local control plane, offline, until interrupted."""
    raise typer.Exit(main(context.args, prog=context.command_path))
