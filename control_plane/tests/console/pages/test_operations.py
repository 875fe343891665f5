"""Monitoring > System operations: columns, labels, filters and pages (sections 2.3, 3.2, 4.5)."""

import re
from typing import Any
from urllib.parse import quote

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor
from neonctl_local import LocalControlPlane, ManualClock
from neonctl_local.console.operation_list import MOST_CHOICES, PAGE_SIZE
from neonctl_local.engine.operations import OperationChain
from neonctl_local.settings import BackgroundIntervals, Durations

NONE = "\N{EN DASH}"
MARKUP = "<b>bold</b> & \u202eright-to-left"


@pytest.fixture
def path(project_id: str) -> str:
    """The path of the page."""
    return f"/projects/{project_id}/operations"


def rows(page: Page) -> list[list[str]]:
    """Return the texts of the cells of each row, without the details."""
    assert page.status == 200
    found: list[list[str]] = []
    for row in re.findall(r'<tr id="operation-.*?</tr>', page.html, re.DOTALL):
        cells = re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.DOTALL)
        texts = [re.sub(r"<details.*?</details>", "", cell, flags=re.DOTALL) for cell in cells]
        found.append([" ".join(re.sub(r"<[^>]+>", " ", text).split()) for text in texts])
    return found


def problems(page: Page) -> list[str]:
    """Return the texts of the rows below operations with an error."""
    found = re.findall(r'<tr id="problem-.*?</tr>', page.html, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in found]


def names(page: Page) -> list[str]:
    return [row[0] for row in rows(page)]


def label_of(page: Page, name: str) -> str:
    """Return the status cell of the only row of an operation."""
    (label,) = [row[3] for row in rows(page) if row[0] == name]
    return label


def links(page: Page, words: str) -> list[str]:
    """Return the links to other pages of the list."""
    return [link.removeprefix("/console") for link in page.links if words in link]


async def test_list_has_the_columns_of_the_monitoring_view(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(9)
    created = await api.branch(project_id, name="preview", compute=True)
    clock.advance(9)
    page = await visitor.get(path)
    header = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", page.html)
    assert header == ["Operation", "Branch", "Compute", "Operation status", "Duration", "Date"]
    endpoint_id = created["endpoints"][0]["id"]
    assert rows(page)[:2] == [
        ["Start compute", "preview", endpoint_id, "OK", "1.0 s", "2026-01-01 00:00:09 UTC"],
        ["Create branch", "preview", NONE, "OK", "1.0 s", "2026-01-01 00:00:09 UTC"],
    ]
    assert names(page)[2:] == ["Start compute", "Create timeline"]
    branch = f"/console/projects/{project_id}/branches/{created['branch']['id']}"
    assert branch in page.links


async def test_details_show_the_id_and_the_values_of_the_api(
    visitor: Visitor, api: Client, project_id: str, path: str
) -> None:
    operation = (await api.operations(project_id))[0]
    page = await visitor.get(path)
    assert f'<code class="id" title="{operation["id"]}">{operation["id"]}</code>' in page.html
    assert "create_timeline" in page.text


@pytest.mark.control_plane(durations=Durations(default=4, scheduling=0.5))
async def test_labels_follow_the_life_of_an_operation(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(20)
    await api.branch(project_id, name="preview", compute=True)
    waiting = rows(await visitor.get(path))
    assert [row[3:5] for row in waiting[:2]] == [["Scheduling", NONE], ["Scheduling", NONE]]
    clock.advance(3)
    page = await visitor.get(path)
    assert [row[3:5] for row in rows(page)[:2]] == [["Scheduling", NONE], ["In progress", "1.0 s"]]
    assert 'data-since="2026-01-01T00:00:22Z"' in page.html
    clock.advance(20)
    done = rows(await visitor.get(path))
    assert [row[3:5] for row in done[:2]] == [["OK", "4.0 s"], ["OK", "2.0 s"]]


@pytest.mark.parametrize(
    ("status", "label"),
    [("failed", "Error"), ("error", "Error"), ("cancelled", "Error"), ("skipped", "OK")],
)
async def test_error_is_shown_with_its_message(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str,
    status: str, label: str,
) -> None:  # fmt: skip
    clock.advance(9)
    await api.control_plane.fail_next("create_branch", status=status, error=f"no space {MARKUP}")
    await api.branch(project_id, name="preview")
    clock.advance(9)
    page = await visitor.get(path)
    assert label_of(page, "Create branch") == label
    assert "<b>bold</b>" not in page.html
    (problem,) = problems(page)
    assert problem.startswith("no space &lt;b&gt;bold")


async def test_operation_after_a_failed_one_has_no_duration(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(9)
    await api.control_plane.fail_next("create_branch")
    await api.branch(project_id, name="preview", compute=True)
    clock.advance(9)
    page = await visitor.get(path)
    row = rows(page)[0]
    assert (row[0], row[3], row[4]) == ("Start compute", "Error", NONE)
    assert problems(page)[0].startswith("not started: ")


async def test_retry_is_shown_with_its_time(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(9)
    await api.control_plane.fail_next("create_branch", retry_after=600, error="storage is busy")
    await api.branch(project_id, name="preview")
    clock.advance(9)
    page = await visitor.get(path)
    assert label_of(page, "Create branch") == "Scheduling"
    assert problems(page) == ["Retry at 2026-01-01 00:10:10 UTC : storage is busy"]
    clock.advance(601)
    assert label_of(await visitor.get(path), "Create branch") == "OK"


async def test_deleted_branch_keeps_its_name(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(9)
    branch_id = (await api.branch(project_id, name=MARKUP))["branch"]["id"]
    clock.advance(9)
    await api.request("DELETE", f"/projects/{project_id}/branches/{branch_id}")
    clock.advance(9)
    page = await visitor.get(path)
    first = rows(page)[0]
    assert first[:2] == [
        "Delete timeline",
        "&lt;b&gt;bold&lt;/b&gt; &amp; \u202eright-to-left deleted",
    ]
    assert f"/console/projects/{project_id}/branches/{branch_id}" in page.links
    page = await visitor.get(f"{path}?branch={branch_id}")
    assert names(page) == ["Delete timeline", "Create branch"]
    assert page.form(path).fields["branch"] == branch_id


async def make_operations(api: Client, project_id: str, count: int) -> None:
    """Store operations of the first branch of a project."""
    branch = await api.main_branch(project_id)
    state = api.control_plane._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - requests would take long

    def store(tx: Any) -> None:  # Any: a transaction
        for _ in range(count):
            OperationChain(tx, project_id).add("check_availability", branch_id=branch["id"])

    await state.database.run(store)


async def test_filters_are_kept_in_the_url_and_in_the_form(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(9)
    await api.control_plane.fail_next("create_branch")
    preview = (await api.branch(project_id, name="preview"))["branch"]["id"]
    clock.advance(9)
    page = await visitor.get(path)
    form = page.form(path)
    assert form.method == "get"
    assert form.fields == {"branch": "", "action": "", "status": ""}
    query = f"?branch={preview}&action=create_branch&status=Error"
    page = await visitor.get(path + query)
    assert names(page) == ["Create branch"]
    fields = {"branch": preview, "action": "create_branch", "status": "Error"}
    assert page.form(path).fields == fields
    assert f"/console{path}" in page.links  # clears the filter
    assert names(await visitor.get(f"{path}?branch=VIEW")) == ["Create branch"]
    assert len(names(await visitor.get(f"{path}?branch=i"))) == 3  # main and preview
    assert names(await visitor.get(f"{path}?branch=i&status=Error")) == ["Create branch"]
    assert names(await visitor.get(f"{path}?status=OK")) == ["Start compute", "Create timeline"]
    assert names(await visitor.get(f"{path}?action=start_compute")) == ["Start compute"]


@pytest.mark.parametrize(
    "query",
    ["branch=no-branch", "action=no_action", "status=Lost", "status=In+progress", "branch=%00"],
)
async def test_filter_without_matches_can_be_cleared(
    visitor: Visitor, clock: ManualClock, path: str, query: str
) -> None:
    clock.advance(9)
    page = await visitor.get(f"{path}?{query}")
    assert page.status == 200
    assert "No operation matches the filter" in page.text
    assert f"/console{path}" in page.links


async def test_project_without_operations_shows_what_to_do(
    visitor: Visitor, api: Client, project_id: str, path: str
) -> None:
    state = api.control_plane._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no request deletes operations
    await state.database.run(lambda tx: tx.execute("DELETE FROM operations"))
    page = await visitor.get(path)
    assert "No operations yet" in page.text
    assert f"/console/projects/{project_id}/branches/new" in page.links


async def test_pages_stay_stable_while_operations_are_added(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    await make_operations(api, project_id, 2 * PAGE_SIZE)
    clock.advance(9)
    first = await visitor.get(f"{path}?action=check_availability")
    assert len(rows(first)) == PAGE_SIZE
    assert links(first, "after=") == []
    (older,) = links(first, "before=")
    assert "action=check_availability" in older
    second = await visitor.get(older)
    assert len(rows(second)) == PAGE_SIZE
    await make_operations(api, project_id, 3)
    assert row_ids(await visitor.get(older)) == row_ids(second)
    assert links(second, "before=") == []
    (newer,) = links(second, "after=")
    assert row_ids(await visitor.get(newer)) == row_ids(first)
    assert row_ids(first) & row_ids(second) == set()


def row_ids(page: Page) -> set[str]:
    return set(re.findall(r'<tr id="operation-([^"]+)"', page.html))


@pytest.mark.parametrize("position", ["x", "-1", "9" * 30, "1e5", "\u0661", "999999999999999999"])
async def test_invalid_position_shows_the_newest_page(
    visitor: Visitor, path: str, position: str
) -> None:
    newest = names(await visitor.get(path))
    for name in ("before", "after"):
        assert names(await visitor.get(f"{path}?{name}={quote(position)}")) == newest


async def test_project_with_many_branches_has_a_text_field(
    visitor: Visitor, api: Client, clock: ManualClock, path: str
) -> None:
    state = api.control_plane._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - requests would take long
    await state.database.run(
        lambda tx: [
            tx.execute(
                "INSERT INTO branches SELECT 'br-copy-' || ?, project_id, parent_id, parent_lsn, "
                "parent_timestamp, 'copy ' || ?, 0, protected, init_source, annotation, created_by,"
                " created_at, updated_at, state_before, state, state_at, state_operation, "
                "logical_size, expires_at, ttl_interval_seconds, last_reset_at, restored_from, "
                "restored_as, restore_status, backup_schedule, check_at, archive_at, deleted_at, "
                "deletion_method, recoverable_until FROM branches WHERE is_default",
                number,
                number,
            )
            for number in range(MOST_CHOICES)
        ]
    )
    clock.advance(9)
    page = await visitor.get(f"{path}?branch=MA")
    assert "<option" in page.html
    assert page.html.count("<option") < MOST_CHOICES
    assert page.form(path).fields["branch"] == "MA"
    assert names(page) == ["Start compute", "Create timeline"]


@pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=60))
async def test_due_background_work_is_shown_without_waking_the_project(
    visitor: Visitor, clock: ManualClock, path: str
) -> None:
    clock.advance(300)
    assert names(await visitor.get(path))[0] == "Suspend compute"


async def test_operations_of_a_deleted_project_stay_visible(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str, path: str
) -> None:
    clock.advance(9)
    await api.request("DELETE", f"/projects/{project_id}")
    clock.advance(9)
    page = await visitor.get(path)
    assert "This project was deleted" in page.text
    assert names(page)[0] == "Delete tenant"
    assert f"/console/projects/{project_id}" not in page.links


async def test_operations_of_others_are_not_found(
    visitor: Visitor, control_plane: LocalControlPlane, api: Client
) -> None:
    key = await api.new_user_key("other@example.com")
    created = await api.request("POST", "/projects", {"project": {"name": "theirs"}}, key=key)
    for name in ("operations", "changes"):
        page = await visitor.get(f"/projects/{created['project']['id']}/{name}")
        assert page.status == 404
    assert "theirs" not in page.text
    assert control_plane.requests_served > 0
