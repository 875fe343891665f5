"""Log messages in programs that do not configure logging."""

import logging
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio
from neonctl_async import NeonClient, NeonError, RetryPolicy

async def main():
    retry = RetryPolicy(attempts=2, initial=0)
    async with NeonClient("napi_key", base_url="http://127.0.0.1:1", retry=retry) as neon:
        try:
            await neon.regions.list()
        except NeonError:
            print(neon.requests_sent)

asyncio.run(main())
"""


@pytest.mark.long
@pytest.mark.process
def test_program_without_logging_configuration_prints_nothing() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert (run.stdout.split(), run.stderr) == ([b"2"], b"")


def test_logger_of_the_package_has_one_handler_that_prints_nothing() -> None:
    handlers = logging.getLogger("neonctl_async").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]
