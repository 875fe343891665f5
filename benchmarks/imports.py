"""What it costs to import the package, beside what it imports in any case.

``python benchmarks/imports.py`` starts fresh interpreters, which find everything compiled. Each
times the import of the dependencies and then that of the package, so that both meet the same
conditions. It fails where the two take more than 1.15 times as long as the dependencies alone,
in the median.
"""

import subprocess
import sys
import tempfile

from figures import Result, figure, show

RUNS = 25
MOST = 1.15
DEPENDENCIES = "import aiohttp, anyio, msgspec, tenacity"
STATEMENTS = {
    "import neonctl_async": "import neonctl_async",
    "import NeonClient": "from neonctl_async import NeonClient",
}
TIMED = """
from time import perf_counter
began = perf_counter()
{dependencies}
between = perf_counter()
{statement}
print(between - began, perf_counter() - between)
"""


def measure(statement: str, compiled: str) -> tuple[float, float]:
    """What the dependencies take in a fresh interpreter, and then the statement; in ms."""
    code = TIMED.format(dependencies=DEPENDENCIES, statement=statement)
    # Isolated, it does not heed an environment that forbids to write what is compiled.
    command = [sys.executable, "-I", "-X", f"pycache_prefix={compiled}", "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    dependencies, ours = map(float, told.stdout.split())
    return dependencies * 1000, ours * 1000


def run() -> list[Result]:
    """Measure the statements in turn."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in STATEMENTS}
    with tempfile.TemporaryDirectory() as compiled:
        measure("import neonctl_async", compiled)
        for _ in range(RUNS):
            for name, statement in STATEMENTS.items():
                measured[name].append(measure(statement, compiled))
    return [result(name, times) for name, times in measured.items()]


def result(name: str, times: list[tuple[float, float]]) -> Result:
    """The figures of a statement."""
    dependencies, ours = zip(*times, strict=True)
    ratios = [(each + own) / each for each, own in times]
    return Result(
        figures=[
            figure(name, "dependencies alone, ms", dependencies),
            figure(name, "what it adds, ms", ours),
            figure(name, "both, times dependencies", ratios, target=MOST),
        ]
    )


def main() -> int:
    """Run the benchmark; answers 1 where the target is missed."""
    results = run()
    show(results)
    return 0 if all(one.ok is not False for result in results for one in result.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
