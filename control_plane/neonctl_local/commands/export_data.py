"""``python -m neonctl_local export``: write a data file as JSON lines."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from neonctl_local.arguments import Parser
from neonctl_local.storage.jsonl import Summary, export_data


def main(arguments: Sequence[str], *, prog: str) -> int:
    """Run the command and return its exit status."""
    prog = f"{prog} {arguments[0]}"
    parser = _new_parser(prog)
    options = parser.parse_args(arguments[1:])
    try:
        if options.output is None:
            summary = export_data(options.file, sys.stdout.buffer)
        else:
            summary = _export_to(options.output, options.file)
    except RuntimeError as error:
        parser.exit(1, f"{prog}: {error}\n")
    _report(options.file, summary)
    return 0


def _new_parser(prog: str) -> Parser:
    parser = Parser(
        prog=prog,
        description="Write all records of a data file as JSON lines, even while a server is using "
        "it. The output contains hashes of API keys, and seeds of passwords and credentials.",
        epilog="Example: %(prog)s control-plane.db --output control-plane.jsonl",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the file of --data")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="a new file, which only you can read (default: standard output)",
    )
    return parser


def _export_to(output: Path, file: Path) -> Summary:
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RuntimeError(f"{output} exists already: name a new file for --output") from None
    except OSError as error:
        raise RuntimeError(f"cannot write {output}: {error}") from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            return export_data(file, stream)
    except OSError as error:
        output.unlink()
        raise RuntimeError(f"cannot write {output}: {error}") from error
    except BaseException:
        output.unlink()
        raise


def _report(file: Path, summary: Summary) -> None:
    sys.stderr.write(f"exported {summary.rows} rows of {file}\n")
    if summary.has_databases:
        sys.stderr.write(
            f"the real databases are not in the export: stop the server and copy {file}.d\n"
        )
