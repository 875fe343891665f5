"""Projects with real databases."""

import re

import pytest

from control_plane.tests.console.visitor import visiting
from tests.support.databases import databases, execute

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


async def test_project_with_a_real_database_is_created_and_connects() -> None:
    async with databases() as (control_plane, neon), visiting(control_plane) as visitor:
        form = await visitor.get("/projects/new")
        versions = [int(version) for version in re.findall(r">Postgres (\d+)</option>", form.html)]
        assert versions == list(dict.fromkeys(sorted(versions, reverse=True)))
        page = await visitor.post(form, "/projects/new", name="real")
        project_id = page.path.rpartition("/")[2]
        project = await neon.projects.get(project_id)
        assert project.pg_version == versions[0]
        await neon.operations.wait([one async for one in neon.operations.list(project_id)])
        page = await visitor.get(f"/projects/{project_id}")
        assert f"/console/projects/{project_id}/sql" in "".join(page.links)
        assert "accepts no connections" not in page.text
        assert '<th scope="col" class="number">Size</th>' in page.html
        (action,) = [form.action for form in page.forms if form.action.endswith("/connection")]
        page = await visitor.post(page, action.removeprefix("/console"))
        (uri,) = re.findall(r"postgresql://\S+", page.text)
        assert await execute(uri, "SELECT 1") == 1


async def test_version_that_is_not_installed_is_refused() -> None:
    async with databases() as (control_plane, _), visiting(control_plane) as visitor:
        form = await visitor.get("/projects/new")
        offered = re.findall(r">Postgres (\d+)</option>", form.html)
        missing = [str(version) for version in range(14, 19) if str(version) not in offered]
        if not missing:
            pytest.skip("the machine has every version of Postgres")
        page = await visitor.post(form, "/projects/new", pg_version=missing[0])
        assert (page.status, "is not installed" in page.text) == (400, True)
