"""A DAG that creates and uses a branch for each name in the parameters of its run.

Each branch is a mapped task. While Neon creates the branches, no task occupies a worker.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param, task
from neon_branches import EnsureBranchOperator

with DAG(
    "preview_branches",
    schedule=None,
    params={
        "project_id": Param("late-frost-12345678", type="string"),
        "branches": Param(["preview-1", "preview-2"], type="array", items={"type": "string"}),
    },
) as dag:

    @task
    def names(params: dict[str, list[str]]) -> list[str]:
        """Return the names of the branches."""
        return params["branches"]

    branch = EnsureBranchOperator.partial(
        task_id="branch",
        project_id="{{ params.project_id }}",
        expires_in=timedelta(hours=6),
        retries=2,
        retry_delay=timedelta(minutes=1),
    ).expand(branch=names())

    @task
    def use(branch_id: str) -> None:
        """Use a branch, for example to test a migration."""
        print(f"{branch_id} is ready")

    use.expand(branch_id=branch.output)
