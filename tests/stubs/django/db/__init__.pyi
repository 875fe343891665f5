from collections.abc import Iterator, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

DEFAULT_DB_ALIAS: str

class ConnectionHandler:
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, alias: str) -> BaseDatabaseWrapper: ...

class ConnectionRouter:
    routers: Sequence[object]

connections: ConnectionHandler
router: ConnectionRouter
