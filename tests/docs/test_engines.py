"""docs/recipes.md shows code of the example; make engines runs its other code."""

from tests.support.pages import ROOT, TEXTS, code_blocks

EXAMPLE = ROOT / "examples" / "airflow_branches"


def test_page_shows_the_task_of_the_dag() -> None:
    [(_, code)] = code_blocks(TEXTS["docs/recipes.md"], 'python title="Airflow"')
    assert code in (EXAMPLE / "dags" / "preview_branches.py").read_text(encoding="utf-8")
