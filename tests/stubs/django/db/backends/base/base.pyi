from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

class BaseDatabaseCreation:
    create_test_db: Callable[..., str]
    destroy_test_db: Callable[..., None]
    def test_db_signature(self) -> tuple[object, ...]: ...

class Cursor:
    def execute(self, sql: str, params: Sequence[object] = ...) -> None: ...
    def fetchone(self) -> tuple[object, ...] | None: ...

class BaseDatabaseWrapper:
    alias: str
    vendor: str
    settings_dict: dict[str, Any]
    creation: BaseDatabaseCreation
    def cursor(self) -> AbstractContextManager[Cursor]: ...
    def close(self) -> None: ...
    def close_pool(self) -> None: ...
