"""``make neon``, with a local control plane in the place of Neon."""

import json
import re

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane
from tools import neon as checks
from tools.neon import CHECKS, Both, Site, answers, differences, main


@pytest.mark.virtual_time
@pytest.mark.control_plane(durations=Durations(default=5))
async def test_each_check_has_an_answer_without_ids_and_names(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    found, requests = await answers(api_key=control_plane.api_key, base_url=control_plane.base_url)
    assert list(found) == list(CHECKS)
    assert 20 <= len(found) <= 30
    text = json.dumps(found, ensure_ascii=False)
    assert "not measured" not in text
    assert not re.search(
        r"\b(br|ep|npg|snap|ro)[-_]\w+|neonctl-check-\w|@|\w{8}-\w{4}-|Local", text
    )
    assert await neon.projects.list().collect() == []
    assert control_plane.requests_served - 1 == requests < 300


@pytest.mark.virtual_time
async def test_checks_that_fail_are_named_and_the_project_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 5)
    control_plane.inject(Fault(route="POST /projects/{project_id}/branches", status=500))
    found, _ = await answers(api_key=control_plane.api_key, base_url=control_plane.base_url)
    assert found["Restart an idle compute."].startswith("4")
    assert found["Delete a branch, and list it."].startswith("not measured: ")
    assert await neon.projects.list().collect() == []


async def test_project_of_an_earlier_run_counts_against_the_limit(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    left = await neon.projects.create(name="neonctl-check-1", wait=True)
    with pytest.raises(SystemExit, match=left.project.id):
        await answers(api_key=control_plane.api_key, base_url=control_plane.base_url)
    assert len(await neon.projects.list().collect()) == 1


async def test_text_of_an_error_is_saved_without_what_is_private(neon: NeonClient) -> None:
    site = Site(neon, neon)
    await site.read("GET", "/users/me")
    me = await neon.users.me()
    text = f"{me.email} ({me.id}): br-late-frost-a1b2c3d4 at 2026-01-01T00:00:00Z, npg_abc, 30 days"
    assert site.public(text) == "… (…): … at …, …, 30 days"


def test_differences_show_both_answers() -> None:
    both: Both = {"One.": {"Neon": "accepted", "here": "400 no"}, "Two.": {"Neon": 1, "here": 1}}
    assert differences(both) == (
        "One.\n  Neon: accepted\n  here: 400 no\n1 of 2 answers are equal."
    )


def test_without_a_limit_the_checks_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEON_PROJECT_LIMIT", raising=False)
    main()
    output = capsys.readouterr().out
    assert "NEON_API_KEY and NEON_PROJECT_LIMIT are not both set." in output
    assert all(f"- {text}\n" in output for text in CHECKS)
