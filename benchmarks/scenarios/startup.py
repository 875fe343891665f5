"""The start-up time of the command line, compared with that of Neon's own command line.

Each round starts every program once, in a changing order. The first rounds are not counted: they
compile modules and fill the cache of the file system.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize

INSTALLED = Path(__file__).parents[2] / ".bench-cli"
NEON = "neonctl (neon)"
NODE = "Node.js alone"
PYTHON = "Python alone"

OUR_PROGRAM = (sys.executable, "-m", "neonctl_async")
NEON_PROGRAM = ("node", str(INSTALLED / "node_modules/neon/dist/cli.js"))
# Analytics would send requests to the internet.
NEON_OPTIONS = ("--no-analytics",)
ALONE = {NODE: ("node", "--eval", ""), PYTHON: (sys.executable, "-c", "")}
COMMANDS: Mapping[str, tuple[Sequence[str], float]] = {
    "--version": (("--version",), 250),
    "--help": (("--help",), 250),
    "branches create --help": (("branches", "create", "--help"), 400),
    "projects list": (("projects", "list"), 400),
}
"""The arguments of each command, and the limit of our median in ms."""


def run(size: RunSize) -> list[Row]:
    """Measure all commands in rounds."""
    with tempfile.TemporaryDirectory() as folder, _environment(folder) as environment:
        return [
            _measured(name, arguments, limit, environment, size)
            for name, (arguments, limit) in COMMANDS.items()
        ]


def _measured(
    name: str,
    arguments: Sequence[str],
    limit: float,
    environment: Mapping[str, str],
    size: RunSize,
) -> Row:
    programs = {
        OURS: (*OUR_PROGRAM, *arguments),
        NEON: (*NEON_PROGRAM, *arguments, *NEON_OPTIONS),
        **ALONE,
    }
    values: dict[str, list[float]] = {client: [] for client in programs}
    order = list(programs)
    shuffle = random.Random(0).shuffle
    warm_ups = size.pick(full=3, quick=1)
    for number in range(warm_ups + size.pick(full=21, quick=1)):
        shuffle(order)
        for client in order:
            took = _milliseconds(programs[client], environment)
            if number >= warm_ups:
                values[client].append(took)
    fastest = f"fastest of ours {min(values[OURS]):.0f} ms, of neonctl {min(values[NEON]):.0f} ms"
    return make_row(name, "a new process", "ms", values, targets=[Target(limit)], note=fastest)


def _milliseconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    started = perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return (perf_counter() - started) * 1000


@contextmanager
def _environment(folder: str) -> Generator[Mapping[str, str]]:
    """Provide the environment of the programs: a local control plane with three projects."""
    # PYTHONDONTWRITEBYTECODE would have Python compile our modules at each start.
    inherited = {name: each for name, each in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**inherited, "PYTHONPYCACHEPREFIX": folder, "HOME": folder, "NO_COLOR": "1"}
    options = ("--port", "0", "--quiet", "--no-console")
    command = (sys.executable, "-m", "neonctl_local", *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as server:
        try:
            assert server.stdout is not None
            for _ in range(2):
                name, _, value = server.stdout.readline().removeprefix("export ").partition("=")
                environment[name] = value.strip()
            for name in ("shop", "blog", "docs"):
                arguments = (*OUR_PROGRAM, "projects", "create", "--name", name)
                subprocess.run(arguments, env=environment, check=True, capture_output=True)
            yield environment
        finally:
            server.terminate()
