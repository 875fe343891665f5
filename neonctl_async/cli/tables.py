"""The layout of tables: columns are cut or left out to fit a width. Pure: no I/O."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from neonctl_async.cli.styles import Text, cell_width

MIN_WIDTH: Final = 16
"""The smallest width to which columns are cut so that more of them fit."""
_LAST: Final = 8
"""The smallest width of the last column, which fills the remaining width."""
_SHORTEST: Final = 3
_GAP: Final = 2


def table(
    titles: Sequence[str], rows: Sequence[Sequence[Text]], shown: Mapping[str, int]
) -> Iterator[Text]:
    """Yield the lines of a table with the columns in ``shown``, which maps titles to widths."""
    numbers = [titles.index(title) for title in shown]
    widths = list(shown.values())
    yield _line([Text(title, "bold") for title in shown], widths)
    for row in rows:
        yield _line([row[number] for number in numbers], widths)


def natural(titles: Sequence[str], rows: Sequence[Sequence[Text]]) -> dict[str, int]:
    """Return the width that each column needs to show its longest text."""
    return {
        title: max([cell_width(title), *(row[number].width for row in rows)])
        for number, title in enumerate(titles)
    }


def fitted(
    widths: Mapping[str, int],
    width: int,
    *,
    whole: Collection[str] = (),
    first: Sequence[str] = (),
) -> dict[str, int]:
    """Return the widths of the columns that are shown, in a table of at most this width.

    The columns in ``first`` are always shown. The others are added in order, unless they do not fit
    even when all columns are cut to MIN_WIDTH. The columns in ``whole`` are never cut.
    """
    smallest = {
        title: each if title in whole else min(each, max(MIN_WIDTH, cell_width(title)))
        for title, each in widths.items()
    }
    end = list(widths)[-1]
    if end not in whole:
        smallest[end] = min(smallest[end], max(_LAST, cell_width(end)))
    chosen = list(first)
    for title in widths:
        needed = [smallest[one] for one in (*chosen, title)]
        if title not in chosen and (not chosen or _total(needed) <= width):
            chosen.append(title)
    shown = {title: each for title, each in widths.items() if title in chosen}
    _cut(shown, width, smallest)
    _cut(shown, width, {one: shown[one] if one in whole else _SHORTEST for one in shown})
    return shown


def _cut(shown: dict[str, int], width: int, smallest: Mapping[str, int]) -> None:
    """Cut the widest columns until the table fits, or until nothing more can be cut."""
    while _total(shown.values()) > width:
        cuttable = [one for one in shown if shown[one] > max(smallest[one], cell_width(one))]
        if not cuttable:
            return
        shown[max(cuttable, key=shown.__getitem__)] -= 1


def _total(widths: Collection[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


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
