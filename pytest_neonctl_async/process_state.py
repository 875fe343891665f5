"""Saves the process state that migrations can change, and restores it afterwards.

Migrations run in one process of one test run only, and not at all if their result is cached. So no
test may depend on what they leave behind, such as the loggers that Alembic's ``fileConfig()``
disables.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import Any, Final, TypeAlias, cast

_Restore: TypeAlias = Callable[[], object]

_LOGGER: Final = ("disabled", "filters", "handlers", "level", "propagate")
"""The attributes of a logger that a configuration of logging sets."""
_HANDLER: Final = ("filters", "formatter", "level")
_LISTS_OF_HANDLERS: Final = ("_handlers", "_handlerList")
"""The ``logging`` attributes that list the handlers, even pytest's, that a configuration closes."""


@contextmanager
def unchanged_process() -> Generator[None, None, None]:
    """Restore the state of the process on exit.

    This covers logging, warning filters, environment variables, the working directory,
    ``sys.path``, signal handlers, the event loop and its policy, and Django's settings and
    connections. Modules that were imported stay imported.
    """
    with ExitStack() as stack, warnings.catch_warnings():
        for restore in (
            *_signals(),
            _directory(),
            _environment(),
            _attribute(sys, "path"),
            _event_loop(),
            *_logging(),
            *_django(),
        ):
            stack.callback(restore)
        with _without_known_handlers():
            yield


def _copy(value: object) -> Callable[[], object]:
    """Return a function that restores the lists and dicts in ``value``, and returns ``value``."""
    match value:
        case dict():
            return _copy_of_dict(cast("dict[object, object]", value))
        case list():
            return _copy_of_list(cast("list[object]", value))
        case _:
            return lambda: value


def _copy_of_dict(value: dict[object, object]) -> Callable[[], object]:
    items = {key: _copy(item) for key, item in value.items()}

    def restore() -> object:
        value.clear()
        value.update({key: item() for key, item in items.items()})
        return value

    return restore


def _copy_of_list(value: list[object]) -> Callable[[], object]:
    items = [_copy(item) for item in value]

    def restore() -> object:
        value[:] = [item() for item in items]
        return value

    return restore


def _attribute(owner: object, name: str) -> _Restore:
    before = _copy(getattr(owner, name))
    return lambda: setattr(owner, name, before())


def _signals() -> Iterator[_Restore]:
    if threading.current_thread() is not threading.main_thread():
        return  # no other thread can change a handler
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def restore() -> None:
        for number, handler in before.items():
            # None is a handler that Python has not installed, and cannot restore.
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)

    yield restore


def _directory() -> _Restore:
    with suppress(FileNotFoundError):  # the directory was removed
        return partial(os.chdir, os.getcwd())  # noqa: PTH109 - as long as the process itself
    return lambda: None


def _environment() -> _Restore:
    before = dict(os.environ)

    def restore() -> None:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value

    return restore


def _event_loop() -> _Restore:
    """Restore the policy, and the loop of this thread, which ``asyncio.run()`` removes."""
    with warnings.catch_warnings(action="ignore"):
        policy = asyncio.get_event_loop_policy()  # pyright: ignore[reportDeprecated] - until Python 3.16
    local: object = getattr(policy, "_local", None)
    before: dict[str, object] = {} if local is None else dict(vars(local))

    def restore() -> None:
        with warnings.catch_warnings(action="ignore"):
            asyncio.set_event_loop_policy(policy)  # pyright: ignore[reportDeprecated] - as above
        if local is not None:
            vars(local).clear()
            vars(local).update(before)

    return restore


def _logging() -> Iterator[_Restore]:
    captures = cast("Any", logging)._warnings_showwarning is not None  # noqa: SLF001 - logging has no function for it
    yield partial(logging.captureWarnings, captures)
    yield partial(logging.setLogRecordFactory, logging.getLogRecordFactory())
    yield partial(logging.setLoggerClass, logging.getLoggerClass())
    # It also clears the cache of levels. Callbacks run in reverse order, so the loggers are first.
    yield partial(logging.disable, logging.root.manager.disable)
    known = {"": logging.root, **_loggers()}
    yield partial(_reset_loggers, known)
    handlers: set[logging.Handler] = set()
    for logger in known.values():
        handlers.update(logger.handlers)
        yield from (_attribute(logger, name) for name in _LOGGER)
    for handler in handlers:
        yield from (_attribute(handler, name) for name in _HANDLER)


def _loggers() -> dict[str, logging.Logger]:
    found = logging.root.manager.loggerDict.items()
    return {name: one for name, one in found if isinstance(one, logging.Logger)}


def _reset_loggers(known: Collection[str]) -> None:
    """Give new loggers the state that they have in processes without migrations."""
    for name, logger in _loggers().items():
        if name not in known:
            logger.disabled, logger.propagate, logger.level = False, True, logging.NOTSET
            handlers = logger.handlers
            handlers[:] = [one for one in handlers if isinstance(one, logging.NullHandler)]
            logger.filters.clear()


@contextmanager
def _without_known_handlers() -> Generator[None, None, None]:
    """Hide the handlers that exist, so that a configuration of logging does not close them."""
    by_name, in_order = (getattr(logging, name) for name in _LISTS_OF_HANDLERS)
    known = by_name.copy(), in_order.copy()
    by_name.clear()
    in_order.clear()
    try:
        yield
    finally:
        by_name.update(known[0])
        in_order[:0] = known[1]


def _django() -> Iterator[_Restore]:
    """Restore the settings, and close the connections that were opened."""
    if (conf := sys.modules.get("django.conf")) is None:
        yield _forget_settings
    else:
        wrapped = conf.settings._wrapped  # noqa: SLF001 - Django has no function for it
        # Setting it also clears the values that were read.
        yield partial(setattr, conf.settings, "_wrapped", wrapped)
        if conf.settings.configured:
            yield _copy(cast("dict[object, object]", vars(wrapped)))
    if (db := sys.modules.get("django.db")) is None:
        yield _forget_connections
    else:
        state = _state(db).copy()
        yield _copy(state.get("settings"))
        opened = {one.alias for one in _connections(db) if one.connection}
        yield partial(_restore_connections, db, state, opened)


def _state(db: ModuleType) -> dict[str, object]:
    connections: object = db.connections
    return vars(connections)


def _connections(db: ModuleType) -> list[Any]:
    """Return the connections that exist. Any other way to find them would read the settings."""
    if "settings" not in _state(db):
        return []
    found: list[Any] = db.connections.all(initialized_only=True)
    return found


def _restore_connections(db: ModuleType, state: dict[str, object], opened: set[str]) -> None:
    for one in _connections(db):
        if one.alias not in opened:
            one.close()
        if "settings" not in state:
            del db.connections[one.alias]
    _state(db).clear()
    _state(db).update(state)


def _forget_settings() -> None:
    """Make Django read its settings again, as if the migrations had not read them."""
    if (conf := sys.modules.get("django.conf")) is not None:
        conf.settings._wrapped = conf.empty  # noqa: SLF001 - as above


def _forget_connections() -> None:
    if (db := sys.modules.get("django.db")) is not None:
        state = {**_state(db), "_settings": None}
        state.pop("settings", None)
        _restore_connections(db, state, set())
