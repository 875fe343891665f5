"""The fixed responses of the benchmarks."""

from pathlib import Path

import msgspec

from benchmarks.servers.fixed_responses import PAGE, cursor_of, write
from neonctl_async.models.operations import OperationsPage


def test_cursors_lead_through_all_pages(tmp_path: Path) -> None:
    write(tmp_path, 2 * PAGE)
    pages = [
        msgspec.json.decode((tmp_path / f"page-{n}.json").read_bytes(), type=OperationsPage)
        for n in range(3)
    ]
    assert [len(page.operations) for page in pages] == [PAGE, PAGE, 0]
    following = [page.pagination and page.pagination.cursor for page in pages]
    assert following == [cursor_of(1), cursor_of(2), cursor_of(2)]
    assert len({one.id for page in pages for one in page.operations}) == 2 * PAGE
