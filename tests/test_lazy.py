"""The package imports its names on first use."""

import ast
import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import neonctl_async

PACKAGES = ["neonctl_async", "pytest_neonctl_async"]


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a package imports for type checkers, with their modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                assert statement.module is not None
                yield from ((statement.module, alias.name) for alias in statement.names)


def mapped(package: str, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a package imports at runtime, with their modules."""
    [mapping] = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    for module, names in ast.literal_eval(ast.unparse(mapping)).items():
        full = f"{package}{module}" if module.startswith(".") else module
        yield from ((full, name) for name in names)


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_and_the_runtime_see_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    assert sorted(imported(tree)) == sorted(mapped(package, tree))
    assert {name for _, name in imported(tree)} == {*module.__all__} - {"__version__"}
    assert {*module.__all__} <= {*dir(module)}


def in_a_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.process
def test_import_of_the_package_imports_no_dependency() -> None:
    heavy = ("aiohttp", "anyio", "asyncio", "msgspec", "neonctl_async.client", "tenacity")
    code = f"import sys, neonctl_async; print([name for name in {heavy} if name in sys.modules])"
    assert in_a_new_process(code) == "[]"


@pytest.mark.process
def test_all_ways_of_importing_work() -> None:
    code = """
import neonctl_async
assert neonctl_async.NeonClient.__module__ == "neonctl_async.client"
assert neonctl_async.errors.NeonError is neonctl_async.NeonError
from neonctl_async import *
assert Operation is neonctl_async.Operation
assert UNSET is neonctl_async.UNSET
print(vars(neonctl_async)["NeonClient"] is NeonClient)
"""
    assert in_a_new_process(code) == "True"


@pytest.mark.process
def test_threads_import_the_same_names() -> None:
    code = """
import threading, neonctl_async
names = ["NeonClient", "Operation", "NeonError", "Paginator", "RateBudget", "Hooks"] * 4
start, found = threading.Barrier(len(names)), []
def use(name):
    start.wait()
    found.append(getattr(neonctl_async, name) is getattr(neonctl_async, name))
threads = [threading.Thread(target=use, args=[name]) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found == [True] * len(names))
"""
    assert in_a_new_process(code) == "True"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'neonctl_async' has no attribute 'Neon'"):
        getattr(neonctl_async, "Neon")  # noqa: B009 - type checkers reject the attribute
    with pytest.raises(ImportError, match="cannot import name 'Neon'"):
        exec("from neonctl_async import Neon")


def test_record_is_pickled_by_the_module_that_defines_it() -> None:
    ref = neonctl_async.OperationRef(project_id="p", id="o")
    assert b"neonctl_async.models.operations" in pickle.dumps(ref)
    assert pickle.loads(pickle.dumps(ref)) == ref


def test_directory_lists_only_public_names() -> None:
    assert not {"TYPE_CHECKING", "lazy_names"} & {*dir(neonctl_async)}


def test_packages_that_import_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_one").mkdir()
    (tmp_path / "lazy_one" / "__init__.py").write_text(
        "from neonctl_async._internal import lazy_names\n"
        "__all__ = ['one']\n"
        "__getattr__, __dir__ = lazy_names(__name__, {'.inner': ('one',)})\n"
    )
    (tmp_path / "lazy_one" / "inner.py").write_text("import lazy_one\none = lazy_one.__all__\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    package = importlib.import_module("lazy_one")
    assert package.one == ["one"]
    assert "one" in vars(package)
