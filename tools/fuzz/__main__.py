"""Searches for inputs that break the wire format or the models: ``python -m tools.fuzz``.

Coverage of the package, its parsers and the choice of inputs guides the search. It stops at the
first input that violates a property or takes too long, or when the time is over. Interesting inputs
are stored in ``.fuzz``, where the next run continues.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

TOKENS = Path(__file__).parent / "tokens.dict"
INSTRUMENTED = ["neonctl_async", "neonctl_local", "tests", "tools", "email", "urllib"]
MAX_LENGTH = 64 * 1024
MAX_SECONDS = 0.5
"""The CPU time that one input may take, because the event loop is blocked meanwhile."""


def main() -> int:
    """Fuzz until the time is over or an input fails; the fuzzer ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"))
    parser.add_argument("rest", nargs="*", help="further options of libFuzzer, after --")
    options = parser.parse_args()
    # Imported by name: atheris has no types, and only fuzzing needs it.
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=INSTRUMENTED):
        targets = importlib.import_module("tools.fuzz.targets")
        seeds = importlib.import_module("tools.fuzz.seeds").seeds()

    def one_input(data: bytes) -> int:
        started = time.process_time()
        is_known = targets.run(data)
        assert time.process_time() - started < MAX_SECONDS, "too slow"
        return 0 if is_known else -1

    corpus = options.folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={options.seconds}",
            f"-max_len={MAX_LENGTH}",
            f"-artifact_prefix={options.folder}/",
            f"-dict={TOKENS}",
            *options.rest,
            str(corpus),
        ],
        one_input,
    )
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
