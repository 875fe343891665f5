from typing import Any

import pytest

from neonctl_async import Wait, WaitOptions
from neonctl_async.waiting.waiter import wait_options


def ignore(_operation: object) -> None:
    pass


async def ignore_later(_operation: object) -> None:
    pass


OPTIONS = WaitOptions(timeout=None, connect=True, on_update=ignore)


@pytest.mark.parametrize(
    ("wait", "options"),
    [
        (False, None),
        (True, WaitOptions(timeout=300.0, connect=False, on_update=None)),
        (0, WaitOptions(timeout=0)),
        (2.5, WaitOptions(timeout=2.5)),
        ("connect", WaitOptions(timeout=300.0, connect=True)),
        (OPTIONS, OPTIONS),
    ],
)
def test_argument_is_converted_to_options(wait: Wait, options: WaitOptions | None) -> None:
    assert wait_options(wait) == options


@pytest.mark.parametrize("wait", [-1, float("nan")])
def test_invalid_number_of_seconds_is_rejected(wait: float) -> None:
    with pytest.raises(ValueError, match=r"^wait is .*: expected 0 or more seconds$"):
        wait_options(wait)


@pytest.mark.parametrize("wait", [None, "yes", "", [], {"timeout": 1.0}])
def test_argument_of_another_type_is_rejected(wait: Any) -> None:
    with pytest.raises(TypeError, match=r"^wait is .*: expected True, .*WaitOptions\(\.\.\.\)$"):
        wait_options(wait)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": True}, "^timeout is True: expected a number of seconds, or None$"),
        ({"timeout": "60"}, "^timeout is '60': expected a number of seconds, or None$"),
        ({"connect": "yes"}, "^connect is 'yes': expected True or False$"),
        ({"on_update": 1}, "^on_update is 1: expected a function"),
        ({"on_update": ignore_later}, "^on_update is .* a coroutine function"),
    ],
)
def test_option_of_another_type_is_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        WaitOptions(**options)


def test_negative_timeout_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"^timeout is -1: expected 0 or more seconds$"):
        WaitOptions(timeout=-1)
