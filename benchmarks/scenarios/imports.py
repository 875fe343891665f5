"""The import time of the package, compared with that of its dependencies.

A fresh interpreter imports the dependencies and then the package, both already compiled, so both
are measured under the same conditions. Other fresh interpreters import the other clients.
"""

import json
import subprocess
import sys
import tempfile

from benchmarks.harness.results import NEON_API, NEON_SDK, OURS, PYDANTIC, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.neon_sdk import INSTALLED

DEPENDENCIES = "its dependencies"
PROGRAM = """
from time import perf_counter
started = perf_counter()
{before}
between = perf_counter()
{statement}
print(between - started, perf_counter() - started)
"""
SDK = INSTALLED / "node_modules/@neon/sdk/dist/index.js"
BEFORE = "import aiohttp, anyio, msgspec, tenacity"
STATEMENT = "from neonctl_async import NeonClient"
NODE_PROGRAM = """
const started = performance.now();
await import({package});
console.log(performance.now() - started);
"""
PEERS = {NEON_API: "import neon_api", PYDANTIC: "import httpx, pydantic"}


def measure(compiled: str, statement: str, before: str = "") -> tuple[float, float]:
    """Return the time of ``before``, and of both statements, in a fresh interpreter, in ms."""
    code = PROGRAM.format(before=before, statement=statement)
    # -I: PYTHONDONTWRITEBYTECODE in the environment would prevent the compilation.
    command = [sys.executable, "-I", "-X", f"pycache_prefix={compiled}", "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, both = map(float, output.split())
    return first * 1000, both * 1000


def measure_sdk() -> float:
    """Return the time in which a fresh Node.js process imports the SDK, in ms."""
    code = NODE_PROGRAM.format(package=json.dumps(str(SDK)))
    command = ["node", "--input-type=module", "--eval", code]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run(size: RunSize) -> list[Row]:
    """Measure all imports in rounds."""
    values: dict[str, list[float]] = {name: [] for name in (OURS, DEPENDENCIES, *PEERS, NEON_SDK)}
    with tempfile.TemporaryDirectory() as compiled:
        for statement in (STATEMENT, *PEERS.values()):
            measure(compiled, statement)
        for _ in range(size.pick(full=15, quick=1)):
            dependencies, both = measure(compiled, STATEMENT, BEFORE)
            values[DEPENDENCIES].append(dependencies)
            values[OURS].append(both)
            for name, statement in PEERS.items():
                values[name].append(measure(compiled, statement)[1])
            values[NEON_SDK].append(measure_sdk())
    targets = [Target(1.15, relative_to=DEPENDENCIES)]
    return [make_row(STATEMENT, "fresh interpreter", "ms", values, targets=targets)]
