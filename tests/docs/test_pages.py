"""The programs of README, docs and examples run, and links lead to existing pages."""

import asyncio
import importlib
import inspect
import re
import tempfile
from pathlib import Path
from pkgutil import resolve_name

import pytest

from neonctl_async import NeonClient, errors
from neonctl_local import Durations, LocalControlPlane
from tests.support.examples import run
from tests.support.pages import PAGES, ROOT, TEXTS, code_blocks, compiled
from tests.support.postgres import skip_without_postgres
from tests.support.records import SECRETS

DOCS = [page for page in TEXTS if page.startswith("docs/") or page.endswith("README.md")]
NEEDS_POSTGRES = "LocalControlPlane(postgres=True"

# These imports read files, which would block the loop of a test.
importlib.import_module("fastapi")
importlib.import_module("opentelemetry.context")
importlib.import_module("psycopg")
importlib.import_module("rich")


def blocks(page: str, *, with_postgres: bool = False) -> list[tuple[int, str]]:
    """Return the line and the code of each block that needs Postgres, or of the others."""
    found = code_blocks(TEXTS[page], "python")
    return [(line, code) for line, code in found if (NEEDS_POSTGRES in code) == with_postgres]


@pytest.mark.parametrize("page", [page for page in DOCS if blocks(page)])
async def test_code_of_a_page_runs_from_top_to_bottom(
    page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with LocalControlPlane(durations=Durations(default=0.01)) as control_plane:
        monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
        monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            project = await neon.projects.create(name="docs", wait=True)
            defined: dict[str, object] = {
                "__name__": "__main__",
                "neon": neon,
                "control_plane": control_plane,
                "project_id": project.project.id,
            }
            names: dict[str, object] = {}
            for line, code in blocks(page):
                names |= defined
                block = compiled(ROOT / page, line, code)
                if "asyncio.run(" in code:  # a program with its own event loop
                    before = control_plane.requests_served
                    await asyncio.to_thread(exec, block, names)
                    assert control_plane.requests_served > before
                elif inspect.iscoroutine(result := eval(block, names)):
                    await result


@pytest.mark.parametrize("page", [page for page in DOCS if blocks(page, with_postgres=True)])
@pytest.mark.postgres
async def test_code_with_real_databases_runs(page: str) -> None:
    await asyncio.to_thread(skip_without_postgres)
    for line, code in blocks(page, with_postgres=True):
        await eval(compiled(ROOT / page, line, code), {})


async def test_program_of_the_readme_prints_what_the_page_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [(line, program)] = code_blocks(TEXTS["README.md"], "python")
    [(_, output)] = code_blocks(TEXTS["README.md"], "text")
    async with LocalControlPlane(durations=Durations(default=0.01)) as control_plane:
        monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
        monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
        await asyncio.to_thread(exec, compiled(ROOT / "README.md", line, program), {})
    assert capsys.readouterr().out == output
    assert sum(map(bool, program.splitlines())) <= 12, "the program of the README is short"


def test_page_and_docstring_have_the_same_exception_tree() -> None:
    [(_, tree)] = code_blocks(TEXTS["docs/errors.md"], "text")
    assert inspect.cleandoc(tree) in inspect.cleandoc(errors.__doc__ or "").replace("\n    ", "\n")


def anchors(text: str) -> set[str]:
    """Return the possible link targets on a page: headings and objects of the reference."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    names = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    return names | {*re.findall(r"^::: (\S+)$", text, re.MULTILINE)}


def has_anchor(text: str, anchor: str) -> bool:
    """Return whether a page has a link target. A class of the reference shows its members."""
    owner, _, member = anchor.rpartition(".")
    targets = anchors(text)
    return anchor in targets or (owner in targets and hasattr(resolve_name(owner), member))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_have_a_target(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in link:
            target, _, anchor = link.partition("#")
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), link
            assert not anchor or has_anchor(path.read_text(), anchor), link


OUTPUT = {
    "quickstart.py": "preview is ready",
    "ephemeral_branch.py": "1 branch left: the default one",
}


@pytest.mark.long
@pytest.mark.parametrize("example", OUTPUT)
@pytest.mark.parametrize("server", ["own", "shared"])
@pytest.mark.process
async def test_examples_run(example: str, server: str) -> None:
    async with LocalControlPlane(durations=Durations(default=0.05)) as control_plane:
        code, output, errors = await run(control_plane if server == "shared" else None, example)
        assert (control_plane.requests_served > 0) == (server == "shared")
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            assert await neon.projects.list().collect() == []
    assert (errors, code) == ("", 0)
    assert OUTPUT[example] in output
    assert SECRETS.findall(output.encode()) == []
