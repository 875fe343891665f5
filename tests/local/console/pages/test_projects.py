"""The list of projects, and the form that creates one."""

from tests.local.console.visitor import Visitor


async def test_project_is_created_and_listed(visitor: Visitor) -> None:
    page = await visitor.post(await visitor.get("/projects/new"), "/projects/new", name="<b>shop")
    assert page.status == 200
    assert "Project <b>shop created" in page.text
    assert "&lt;b&gt;shop" in page.html
    assert "created" not in (await visitor.get("")).text


async def test_error_is_shown_beside_what_was_typed(visitor: Visitor) -> None:
    page = await visitor.post(await visitor.get("/projects/new"), "/projects/new", name="a\nb")
    assert page.status == 400
    assert page.form("/projects/new").fields["name"] == "a\nb"
