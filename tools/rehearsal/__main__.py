"""Runs a rehearsal: builds the archives, serves them, installs and checks them."""

import argparse
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.rehearsal import campaign, report
from tools.rehearsal.archives import ROOT, build, wheel_records
from tools.rehearsal.checks import Expected, quick_start
from tools.rehearsal.index import serve
from tools.rehearsal.plan import Installation, installations


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the installations, print their results, and return the exit status."""
    parser = argparse.ArgumentParser("python -m tools.rehearsal", description=__doc__)
    parser.add_argument("--only", default="", help="run the installations with this text, as 'uv'")
    options = parser.parse_args(arguments)
    pythons = campaign.interpreters()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["tool"]["hatch"]["metadata"]["hooks"]["custom"]["extras"]
    planned = installations([*pythons], extras, options.only)
    if not planned:
        parser.error(
            f"no installation contains {options.only!r}: expected a text as 'pip' or '3.12'"
        )
    with TemporaryDirectory(prefix="rehearsal-") as folder:
        try:
            return rehearse(planned, pythons, Path(folder))
        except subprocess.CalledProcessError as error:
            print(error.stdout or "", error.stderr or "", error, sep="\n", file=sys.stderr)
            return 1


def rehearse(planned: Sequence[Installation], pythons: dict[str, str], folder: Path) -> int:
    """Build, serve, install and check in a folder; return the exit status."""
    start = time.monotonic()
    archives = build(folder / "dist")
    print(
        f"Built and checked {archives.wheel.name}, {archives.sdist.name} and neonctl-local",
        flush=True,
    )
    page = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
    version = archives.wheel.name.split("-")[1]
    expected = Expected(version, wheel_records(archives.wheel), quick_start(page))
    results: list[campaign.Result] = []
    with serve(folder / "dist", folder / "index.log") as index:
        for result in campaign.run(planned, pythons, index, expected, folder):
            print(report.line(result), flush=True)
            results.append(result)
        downloads = index.downloads()
    print(report.summary(results, time.monotonic() - start, downloads))
    return 0 if report.is_success(results, downloads) else 1


if __name__ == "__main__":
    sys.exit(main())
