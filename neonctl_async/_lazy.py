"""Packages whose names are imported on first use."""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module


def lazy_names(
    package: str,
    names: Mapping[str, Collection[str]],
    submodules: Collection[str] = (),
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    ``names`` maps each module to the names that the package exports from it. A module that starts
    with a dot belongs to the package. ``submodules`` are attributes of the package as well.
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
