"""The page that plans faults of requests, and failures of operations."""

from collections.abc import Mapping

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import member
from control_plane.tests.console.visitor import Visitor
from neonctl_local import Fault, ManualClock
from neonctl_local.console.pages.faults import effect_of, fault_of
from neonctl_local.errors import ApiError

ROUTE = "GET /projects/{project_id}/operations"


async def test_fault_is_planned_fires_and_is_cleared(visitor: Visitor, api: Client) -> None:
    page = await visitor.get("/faults")
    assert "No active faults" in page.text
    page = await visitor.post(
        page, "/faults/plan", route="GET /projects", status="429", message="slow down", times="2"
    )
    assert page.path == "/faults"
    assert "Fault planned." in page.text
    reply = await api.send("GET", "/projects")
    assert (reply.status, reply.message) == (429, "slow down")
    page = await visitor.get("/faults")
    assert "GET /projects status 429: slow down 1 of 2 100 %" in page.text
    fields = {"csrf": page.form("/sign-out").fields["csrf"], "fault": "1"}
    for notice in ("Fault cleared.", "The fault was cleared before."):
        cleared = await visitor.request("POST", "/faults/clear", data=fields)
        assert notice in cleared.text
    assert (await api.send("GET", "/projects")).status == 200


async def test_all_faults_are_cleared(visitor: Visitor, api: Client) -> None:
    for _ in range(2):
        api.control_plane.inject(Fault(status=503))
    page = await visitor.get("/faults")
    fields = {"csrf": page.form("/sign-out").fields["csrf"], "fault": "all"}
    assert "No active faults" in (await visitor.request("POST", "/faults/clear", data=fields)).text
    assert api.control_plane.faults == ()


async def test_refused_fault_keeps_what_was_typed(visitor: Visitor, api: Client) -> None:
    page = await visitor.get("/faults")
    typed = {"route": ROUTE, "kind": "html", "message": "<b>typed</b>", "delay": "many"}
    refused = await visitor.post(page, "/faults/plan", **typed)
    assert refused.status == 400
    assert "Delay is 'many': expected seconds" in refused.text
    assert refused.form("/faults/plan").fields.items() >= typed.items()
    assert "<b>typed" not in refused.html
    assert api.control_plane.faults == ()


async def test_number_of_faults_is_bounded(visitor: Visitor, api: Client) -> None:
    for _ in range(101):
        api.control_plane.inject(Fault(status=503))
    page = await visitor.get("/faults")
    assert "1 more faults are active." in page.text
    refused = await visitor.post(page, "/faults/plan")
    assert (refused.status, "there are 100 active faults" in refused.text) == (400, True)


FORM = {"route": ROUTE, "kind": "status"}


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, Fault(route=ROUTE, status=503)),
        ({"status": "418", "message": "tea"}, Fault(route=ROUTE, status=418, message="tea")),
        ({"kind": "html"}, Fault(route=ROUTE, html=True, status=502)),
        ({"kind": "drop", "route": "*", "status": "418"}, Fault(drop=True)),
        ({"kind": "hang", "when": "after"}, Fault(route=ROUTE, hang=True, when="after")),
        ({"kind": "delay", "delay": "0.5"}, Fault(route=ROUTE, delay=0.5)),
        (
            {"kind": "truncate", "probability": "25", "times": "3"},
            Fault(route=ROUTE, truncate=True, probability=0.25, times=3),
        ),
        (
            {"route": "*", "branch": " main ", "after": "2", "every": "5"},
            Fault(branch="main", status=503, after=2, every=5),
        ),
    ],
)
def test_form_describes_a_fault(form: Mapping[str, str], fault: Fault) -> None:
    assert fault_of({**FORM, **form}) == fault


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"kind": "x"}, "the kind is 'x'"),
        ({"kind": "delay"}, "the delay is missing"),
        ({"route": "GET /project"}, "did you mean 'GET /projects'"),
        ({"route": "x"}, "there is no route 'x'"),
        ({"status": "99"}, "status is 99: expected 200 to 599"),
        ({"times": "0"}, "times is 0: expected at least 1"),
        ({"times": "9" * 5000}, "expected a whole number"),
        ({"times": "0" * 20 + "9" * 5000}, "expected a whole number"),
        ({"status": "0"}, "status is 0: expected 200 to 599"),
        ({"times": "-1"}, "Times is '-1'"),
        ({"delay": "nan"}, "Delay is 'nan'"),
        ({"delay": "1e999"}, "Delay is '1e999'"),
        ({"every": "0"}, "every is 0: expected at least 1"),
        ({"branch": "main"}, "has no branch"),
        ({"probability": "0"}, "expected a percentage"),
        ({"probability": "101"}, "expected a percentage"),
        ({"when": "never"}, "never"),
    ],
)
def test_invalid_field_is_named(form: Mapping[str, str], words: str) -> None:
    with pytest.raises(ApiError) as caught:
        fault_of({**FORM, **form})
    assert caught.value.status == 400
    assert words in caught.value.message
    assert len(caught.value.message) < 300


def test_effects_are_listed_in_their_order() -> None:
    assert effect_of(Fault(delay=2.5, drop=True)) == "wait 2.5 s, then close the connection"
    assert effect_of(Fault(hang=True)) == "send nothing"
    assert effect_of(Fault(html=True)) == "HTML page with status 502: a planned fault"
    assert effect_of(Fault(truncate=True)) == "cut the response"


async def test_preset_is_planned_and_shows_its_rules(visitor: Visitor, api: Client) -> None:
    page = await visitor.get("/faults")
    page = await visitor.post(page, "/faults/presets", preset="slow-friday")
    assert "All requests one in 10 wait 20 s" in page.text
    assert len(api.control_plane.faults) == 2
    refused = await visitor.post(page, "/faults/presets", preset="quiet-sunday")
    assert (refused.status, "expected one of rate-limited" in refused.text) == (400, True)


async def test_failure_of_operations_is_planned_and_cleared(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str
) -> None:
    page = await visitor.get("/faults")
    assert "No planned failures" in page.text
    typed = {"failure_times": "2", "retry_after": "2.5", "failure_message": "out of space"}
    page = await visitor.post(page, "/faults/failures/plan", operation="create_branch", **typed)
    assert "Failure planned." in page.text
    assert "create_branch failed out of space after 2.5 s 0 of 2" in page.text
    await api.branch(project_id)
    clock.advance(1.5)
    assert (await api.operations(project_id))[-1]["error"] == "out of space"
    page = await visitor.get("/faults")
    assert "1 of 2" in page.text
    await visitor.post(page, "/faults/failures/plan", operation="start_compute")
    for failure, left in (("1", 1), ("all", 0)):
        fields = {"csrf": page.form("/sign-out").fields["csrf"], "failure": failure}
        page = await visitor.request("POST", "/faults/failures/clear", data=fields)
        assert len(await api.control_plane.planned_failures()) == left


async def test_failure_of_a_branch_shows_its_rules(visitor: Visitor) -> None:
    page = await visitor.get("/faults")
    typed = {"failure_branch": "preview", "failure_after": "1"}
    page = await visitor.post(page, "/faults/failures/plan", operation="create_branch", **typed)
    assert "create_branch branch preview, after 1 failed" in page.text


async def test_failure_may_hide_its_retry(visitor: Visitor, api: Client) -> None:
    page = await visitor.get("/faults")
    typed = {"operation": "create_branch", "retry_after": "5", "hide_retry_at": "yes"}
    page = await visitor.post(page, "/faults/failures/plan", **typed)
    assert "after 5 s, hidden" in page.text
    [planned] = await api.control_plane.planned_failures()
    assert not planned.show_retry_at


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"failure_times": "x"}, "Times is 'x'"),
        ({"failure_times": "0"}, "times is 0: expected 1 to"),
        ({"failure_times": "0" * 20 + "9" * 30}, "expected a whole number"),
        ({"retry_after": "-1"}, "Retry after is '-1'"),
        ({"operation": "x"}, "there is no action 'x'"),
        ({"hide_retry_at": "yes"}, "show_retry_at is False"),
        ({"failure_status": "finished"}, "status is 'finished'"),
    ],
)
async def test_refused_failure_keeps_what_was_typed(
    visitor: Visitor, api: Client, typed: Mapping[str, str], words: str
) -> None:
    page = await visitor.get("/faults")
    typed = {"failure_message": "typed text", **typed}
    refused = await visitor.post(page, "/faults/failures/plan", **typed)
    assert (refused.status, words in refused.text) == (400, True)
    fields = refused.form("/faults/failures/plan").fields
    assert fields["failure_message"] == "typed text"
    assert await api.control_plane.planned_failures() == []


async def test_only_the_first_user_sees_the_link(visitor: Visitor, api: Client) -> None:
    assert "/console/faults" in (await visitor.get("")).links
    async with member(api) as other:
        page = await other.get("")
        assert "/console/requests" in page.links
        assert "/console/faults" not in page.links
