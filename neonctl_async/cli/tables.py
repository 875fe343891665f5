"""The layout of tables: columns are cut or left out to fit a width. Pure: no I/O."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from neonctl_async.cli.styles import Text, cell_width

T = TypeVar("T")
MIN_WIDTH: Final = 16
"""The smallest width to which a column is cut: that of a date to the minute."""
_LAST: Final = 8
"""The smallest width of the last column, which fills the remaining width."""
_SHORTEST: Final = 3
_GAP: Final = 2


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[Text]],
    *,
    width: int | None = None,
    whole: Collection[str] = (),
    keep_all: bool = False,
) -> Iterator[Text]:
    """Yield the lines of a table.

    If the table is wider than ``width``, its widest columns are cut, down to MIN_WIDTH. Columns at
    its end that still do not fit are left out; the last one that is shown may be even narrower.
    With ``keep_all``, columns are cut further before any is left out. Columns in ``whole`` are
    never cut.
    """
    widths = {
        title: max([cell_width(title), *(row[number].width for row in rows)])
        for number, title in enumerate(titles)
    }
    if width is not None:
        widths = fitted(widths, width, whole, min_width=_SHORTEST if keep_all else MIN_WIDTH)
    shown = [(titles.index(title), each) for title, each in widths.items()]
    yield _line([Text(titles[number], "bold") for number, _ in shown], list(widths.values()))
    for row in rows:
        yield _line([row[number] for number, _ in shown], list(widths.values()))


def fitted(
    widths: Mapping[str, int], width: int, whole: Collection[str], min_width: int = MIN_WIDTH
) -> dict[str, int]:
    """Return the widths of the columns that are shown, in a table of at most this width."""
    shown = dict(widths)
    smallest = {
        title: each if title in whole else min(each, max(min_width, cell_width(title)))
        for title, each in widths.items()
    }
    while len(shown) > 1:
        last = next(reversed(shown))
        if last not in whole:
            smallest[last] = min(smallest[last], _LAST)
        if _total({title: smallest[title] for title in shown}) <= width:
            break
        shown.popitem()
    while _total(shown) > width:
        cuttable = [title for title in shown if shown[title] > smallest[title]]
        if not cuttable:
            break  # a single column is wider than the screen
        shown[max(cuttable, key=shown.__getitem__)] -= 1
    return shown


def _total(widths: Mapping[T, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _line(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    left = 0  # spaces before the next cell; none at the end of a line
    for cell, width in zip(cells, widths, strict=True):
        shown = cell.cut(width)
        if shown.plain:
            line.append(" " * left).append(shown)
            left = 0
        left += width - shown.width + _GAP
    return line
