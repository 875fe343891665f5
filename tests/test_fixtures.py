"""The fixtures of the tests."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
_SCOPE: Final = re.compile(r"\bscope=")


class Fixture(NamedTuple):
    """A fixture, and the names of the fixtures that it needs."""

    file: str
    lives_long: bool
    needs: frozenset[str]


def fixtures() -> Iterator[tuple[str, Fixture]]:
    for folder in ("tests", "control_plane/tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    made = " ".join(map(ast.unparse, node.decorator_list))
                    if "pytest.fixture" in made or "pytest_asyncio.fixture" in made:
                        needs = frozenset(
                            each.arg for each in (*node.args.args, *node.args.kwonlyargs)
                        )
                        file = path.relative_to(ROOT).as_posix()
                        yield node.name, Fixture(file, _SCOPE.search(made) is not None, needs)


def test_no_long_lived_fixture_is_replaced_under_another_one() -> None:
    """pytest would use what the other one has made of it in all tests, whichever ran first."""
    by_name: defaultdict[str, list[Fixture]] = defaultdict(list)
    needed: set[str] = set()
    for name, fixture in fixtures():
        by_name[name].append(fixture)
        if fixture.lives_long:
            needed |= fixture.needs
    found = {
        (name, other.file)
        for name, definitions in by_name.items()
        if name in needed
        for replaced in definitions
        for other in definitions
        if replaced.lives_long and other.lives_long and other != replaced
        if replaced.file.endswith("conftest.py")
        if other.file.startswith(replaced.file.removesuffix("conftest.py"))
    }
    assert found == set()
