"""Small functions that modules of all layers use."""

import reprlib
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Final

MAX_CHARACTERS: Final = 100
"""The maximum length of a value in an error message."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxlong = _repr.maxother = MAX_CHARACTERS


def shorten(value: object) -> str:
    """Return the repr of a value. The middle of a long value is replaced by ``...``."""
    return _repr.repr(value)


def kind_of(value: object) -> str:
    """Return the type of a value in words, for an error that must not show the value."""
    return "None" if value is None else f"a {type(value).__name__}"


def is_coroutine_function(function: object) -> bool:
    """Return whether calling ``function`` returns a coroutine, which nobody would await."""
    import inspect  # noqa: PLC0415 - takes longer to import than the package

    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def lazy_names(
    package: str,
    names: Mapping[str, Collection[str]],
    submodules: Collection[str] = (),
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` functions of a package (PEP 562).

    ``names`` maps each module to the names that the package exports from it. A module whose name
    starts with a dot belongs to the package. ``submodules`` are attributes of the package as well.
    """
    origins = {name: module for module, exported in names.items() for name in exported}

    def getattr_(name: str) -> object:
        if name in submodules:
            return import_module(f".{name}", package)
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(origins[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_() -> list[str]:
        content = vars(sys.modules[package])
        own = {name for name in content if name.startswith("__")}
        return sorted({*own, *content["__all__"], *submodules})

    return getattr_, dir_
