# The part of airflow.sdk that examples/airflow_branches uses; make engines runs the real one.

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self

from airflow.triggers.base import BaseTrigger

class Connection:
    host: str | None
    password: str | None

class BaseHook:
    @classmethod
    def get_connection(cls, conn_id: str) -> Connection: ...
    @classmethod
    async def aget_connection(cls, conn_id: str) -> Connection: ...

class MappedOperator:
    output: object

class OperatorPartial:
    def expand(self, **mapped: object) -> MappedOperator: ...

class BaseOperator:
    template_fields: Sequence[str]
    def __init__(self, **options: object) -> None: ...
    @classmethod
    def partial(cls, **options: object) -> OperatorPartial: ...
    def defer(
        self, *, trigger: BaseTrigger, method_name: str, timeout: timedelta | None = None
    ) -> NoReturn: ...

class Task(Protocol):
    def __call__(self) -> object: ...
    def expand(self, **mapped: object) -> MappedOperator: ...

def task(function: Callable[..., object]) -> Task: ...

class Param:
    def __init__(self, default: object, **schema: object) -> None: ...

class DAG:
    def __init__(
        self, dag_id: str, *, schedule: str | None, params: Mapping[str, Param]
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def test(self, *, run_conf: Mapping[str, object]) -> Any: ...
