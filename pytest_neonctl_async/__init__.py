"""The pytest plugin of neonctl-async, and the names that its users import in tests.

pytest imports this package at every startup, so its names are imported on first use: they import
``neonctl_async`` and, with it, an HTTP client.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

# Type checkers read these imports.
if TYPE_CHECKING:
    from pytest_neonctl_async.backend import BranchFactory, BranchSettings
    from pytest_neonctl_async.control_plane import ControlPlane
    from pytest_neonctl_async.django_databases import django_files
    from pytest_neonctl_async.migrations import CachedMigrations, alembic_files
    from pytest_neonctl_async.scopes import branch_fixture
    from pytest_neonctl_async.tenant_records import ActiveFault
else:
    _NAMES = {
        ".backend": ("BranchFactory", "BranchSettings"),
        ".control_plane": ("ControlPlane",),
        ".django_databases": ("django_files",),
        ".migrations": ("CachedMigrations", "alembic_files"),
        ".scopes": ("branch_fixture",),
        ".tenant_records": ("ActiveFault",),
    }
    _MODULES = {name: module for module, names in _NAMES.items() for name in names}

    def __getattr__(name: str) -> object:
        try:
            module = _MODULES[name]
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return getattr(_import_module(module, __name__), name)

    def __dir__() -> list[str]:
        return __all__


__all__ = [
    "ActiveFault",
    "BranchFactory",
    "BranchSettings",
    "CachedMigrations",
    "ControlPlane",
    "alembic_files",
    "branch_fixture",
    "django_files",
]
