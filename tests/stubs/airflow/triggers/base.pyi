# The part of airflow.triggers.base that examples/airflow_branches uses.

from typing import Any

class TriggerEvent:
    payload: Any
    def __init__(self, payload: object) -> None: ...

class BaseTrigger:
    def __init__(self) -> None: ...
