"""Durations as options: ``30m``, ``12h``, ``7d``. Pure: no I/O."""

import re
from datetime import timedelta
from typing import Final

import typer

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FORM: Final = re.compile(rf"(\d+(?:\.\d+)?)([{''.join(_SECONDS)}])", re.ASCII)


def duration(text: str) -> timedelta:
    """Return the duration that a text such as ``12h`` means.

    Raises BadParameter for another form, and for a duration that is 0 or too long.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise typer.BadParameter(
            f"{text!r} is not a duration: expected a number above 0 and a unit, such as 30m, 12h "
            "or 7d"
        )
    try:
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long: expected a smaller number") from None
