"""What it takes to import the package, beside what it imports in any case.

Fresh interpreters, which find everything compiled, import the dependencies and then the package,
so that both meet the same conditions. The peers are imported by fresh interpreters in turn.
"""

import json
import subprocess
import sys
import tempfile

from benchmarks.harness.results import NEON_API, NEON_SDK, OURS, PYDANTIC, Row, Target, row
from benchmarks.harness.run_size import Effort
from benchmarks.peers.neon_sdk import INSTALLED

DEPENDENCIES = "its dependencies"
TIMED = """
from time import perf_counter
began = perf_counter()
{before}
between = perf_counter()
{statement}
print(between - began, perf_counter() - began)
"""
SDK = INSTALLED / "node_modules/@neon/sdk/dist/index.js"
BEFORE = "import aiohttp, anyio, msgspec, tenacity"
STATEMENT = "from neonctl_async import NeonClient"
NODE = """
const began = performance.now();
await import({package});
console.log(performance.now() - began);
"""
PEERS = {NEON_API: "import neon_api", PYDANTIC: "import httpx, pydantic"}


def measure(compiled: str, statement: str, before: str = "") -> tuple[float, float]:
    """What a fresh interpreter takes for ``before``, and for both; in ms."""
    code = TIMED.format(before=before, statement=statement)
    # Isolated, it does not heed an environment that forbids to write what is compiled.
    command = [sys.executable, "-I", "-X", f"pycache_prefix={compiled}", "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    first, both = map(float, told.stdout.split())
    return first * 1000, both * 1000


def measure_sdk() -> float:
    """What a fresh process of Node.js takes to import the SDK, in ms."""
    code = NODE.format(package=json.dumps(str(SDK)))
    command = ["node", "--input-type=module", "--eval", code]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run(effort: Effort) -> list[Row]:
    """Measure the statements in turn."""
    taken: dict[str, list[float]] = {name: [] for name in (OURS, DEPENDENCIES, *PEERS, NEON_SDK)}
    with tempfile.TemporaryDirectory() as compiled:
        for statement in (STATEMENT, *PEERS.values()):
            measure(compiled, statement)
        for _ in range(effort.of(thorough=15, quick=1)):
            dependencies, both = measure(compiled, STATEMENT, BEFORE)
            taken[DEPENDENCIES].append(dependencies)
            taken[OURS].append(both)
            for name, statement in PEERS.items():
                taken[name].append(measure(compiled, statement)[1])
            taken[NEON_SDK].append(measure_sdk())
    targets = [Target(1.15, by=DEPENDENCIES)]
    return [row(STATEMENT, "fresh interpreter", "ms", taken, targets=targets)]
