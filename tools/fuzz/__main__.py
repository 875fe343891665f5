"""``python -m tools.fuzz``: looks for inputs that break the wire format or the models.

Coverage of the package, of what it parses with and of the drawing of inputs steers the search.
It ends at the first input that breaks a promise or takes too long, else when the time is over.
What was found is kept in ``.fuzz``, where the next run goes on.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

TOKENS = Path(__file__).parent / "tokens.dict"
STEERED_BY = ["neonctl_async", "tests", "tools", "email", "urllib"]
LONGEST = 64 * 1024
PATIENCE = 0.5
"""The seconds of processor time that one input may take: so long stands the event loop still."""


def main() -> int:
    """Fuzz; the fuzzer itself ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--kept", type=Path, default=Path(".fuzz"))
    parser.add_argument("rest", nargs="*", help="further options of libFuzzer, after --")
    options = parser.parse_args()
    # Found by name: it has no types, and only fuzzing needs it.
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=STEERED_BY):
        targets = importlib.import_module("tools.fuzz.targets")
        seeds = importlib.import_module("tools.fuzz.seeds").seeds()

    def one_input(data: bytes) -> int:
        begun = time.process_time()
        known = targets.run(data)
        assert time.process_time() - begun < PATIENCE, "too slow"
        return 0 if known else -1

    corpus = options.kept / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={options.seconds}",
            f"-max_len={LONGEST}",
            f"-artifact_prefix={options.kept}/",
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
