"""What README, docs and examples show works as shown."""

import asyncio
import importlib
import inspect
import re
from pathlib import Path

import pytest

from neonctl_async import NeonClient, errors
from neonctl_async.local import Durations, LocalControlPlane
from tests.support.examples import run
from tests.support.pages import PAGES, ROOT, TEXTS, code_blocks, compiled
from tests.support.records import SECRETS

# What request.md calls is run against the published description, by tests/contract.
DOCS = [page for page in TEXTS if page.startswith("docs/") and page != "docs/request.md"]


importlib.import_module("rich")  # here, for it asks for the current directory: no loop may


@pytest.mark.parametrize("page", [page for page in DOCS if "```python" in TEXTS[page]])
async def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LocalControlPlane(durations=Durations(default=0.01)) as control_plane:
        monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
        monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            project = await neon.projects.create(name="docs", wait=True)
            given: dict[str, object] = {
                "__name__": "__main__",
                "neon": neon,
                "control_plane": control_plane,
                "project_id": project.project.id,
            }
            shown: dict[str, object] = {}
            for line, code in code_blocks(TEXTS[page], "python"):
                shown |= given
                block = compiled(ROOT / page, line, code)
                if "asyncio.run(" in code:  # a program, with a loop of its own
                    before = control_plane.requests_served
                    await asyncio.to_thread(exec, block, shown)
                    assert control_plane.requests_served > before
                elif inspect.iscoroutine(result := eval(block, shown)):
                    await result


async def test_the_program_of_the_readme_runs_offline(capsys: pytest.CaptureFixture[str]) -> None:
    [(line, program)] = code_blocks(TEXTS["README.md"], "python")
    await asyncio.to_thread(exec, compiled(ROOT / "README.md", line, program), {})
    shown = capsys.readouterr().out.splitlines()
    assert {f"preview-{n} ready" for n in range(20)} < {*shown}


def test_errors_are_drawn_alike_in_code_and_docs() -> None:
    [(_, drawn)] = code_blocks(TEXTS["docs/errors.md"], "text")
    assert inspect.cleandoc(drawn) in inspect.cleandoc(errors.__doc__ or "").replace("\n    ", "\n")


def anchors(text: str) -> set[str]:
    """What can be linked to on a page: its headings, and what the reference describes there."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    names = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    return names | {*re.findall(r"^::: (\S+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in link:
            target, _, anchor = link.partition("#")
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), link
            assert not anchor or anchor in anchors(path.read_text()), link


SAYS = {
    "quickstart.py": "preview is ready",
    "ephemeral_branch.py": "1 branch left: the default one",
}


@pytest.mark.parametrize("example", SAYS)
@pytest.mark.parametrize("where", ["embedded", "elsewhere"])
@pytest.mark.process
async def test_the_examples_run(example: str, where: str) -> None:
    async with LocalControlPlane(durations=Durations(default=0.05)) as control_plane:
        code, output, complaints = await run(
            control_plane if where == "elsewhere" else None, example
        )
        assert (control_plane.requests_served > 0) == (where == "elsewhere")
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            assert await neon.projects.list().collect() == []
    assert (complaints, code) == ("", 0)
    assert SAYS[example] in output
    assert SECRETS.findall(output.encode()) == []
