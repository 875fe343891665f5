"""Runs the DAG of examples/airflow_branches and prints the states of its tasks as JSON."""

import importlib
import json
import sys
from typing import Any


def main(project_id: str, *branches: str) -> None:
    """Run the DAG without retries; print the state and the result of each task."""
    dag: Any = importlib.import_module("preview_branches").dag
    xcom: Any = importlib.import_module("airflow.models.xcom").XComModel
    session: Any = importlib.import_module("airflow.utils.session")
    dag.get_task("branch").partial_kwargs["retries"] = 0
    run = dag.test(run_conf={"project_id": project_id, "branches": [*branches]})
    with session.create_session() as opened:
        found = opened.query(xcom.value).filter(xcom.task_id == "branch")
        results = [value for [value] in found]
    states = [f"{one.task_id} {one.state}" for one in run.get_task_instances()]
    sys.stderr.write(json.dumps({"states": sorted(states), "results": results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
