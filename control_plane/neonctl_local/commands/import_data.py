"""``python -m neonctl_local import``: create a data file from JSON lines."""

import sys
from collections.abc import Sequence
from pathlib import Path

from neonctl_local.arguments import Parser
from neonctl_local.storage.jsonl import import_data


def main(arguments: Sequence[str], *, prog: str) -> int:
    """Run the command and return its exit status."""
    prog = f"{prog} {arguments[0]}"
    parser = Parser(
        prog=prog,
        description="Create a data file from the JSON lines of an export, on standard input.",
        epilog="Example: %(prog)s new.db < control-plane.jsonl",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the new data file")
    file: Path = parser.parse_args(arguments[1:]).file
    if sys.stdin.isatty():
        parser.error("standard input is a terminal: redirect an export to it, with < FILE")
    try:
        summary = import_data(file, sys.stdin.buffer)
    except RuntimeError as error:
        parser.exit(1, f"{prog}: {error}\n")
    sys.stderr.write(f"imported {summary.rows} rows into {file}\n")
    if summary.has_databases and not file.with_name(f"{file.name}.d").exists():
        sys.stderr.write(
            f"the real databases are not in the export: copy their directory to {file}.d before "
            "you start the server\n"
        )
    return 0
