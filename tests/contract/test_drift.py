"""``make drift`` lists what is new, gone and different in a newer version of the packages."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract.description import FOLDER, OLDER_PACKAGE
from tests.contract.drift import main, report, version
from tests.contract.typescript import SDK, TYPES

pytestmark = pytest.mark.contract

CLIENT = Path("node_modules") / SDK / "dist" / "client"
SDK_FACTS = Path("node_modules") / SDK / "package.json"
NEWER_VERSION = "99.0.0"
STEP = f"SDK = {NEWER_VERSION} in the Makefile"
BETA = " * **Note**: This endpoint is currently in Beta."
NEXT = f'Next: set {STEP}, and follow "How to add an endpoint" in docs/contributing.md.'


# Any: parts of JSON documents.
Types = dict[str, Any]


class Newer:
    """A copy of the pinned packages, in a folder that a test changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sdk.gen.js", "sdk.gen.d.ts"):
            self._copy(CLIENT / name)
        self._copy(SDK_FACTS)
        self._copy(Path(TYPES))
        older = folder / "node_modules" / OLDER_PACKAGE
        older.parent.mkdir()
        older.symlink_to(FOLDER / "node_modules" / OLDER_PACKAGE)

    def _copy(self, path: Path) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / path, self.folder / path)

    def replace(self, path: Path, old: str, new: str) -> None:
        """Replace a text that a file has once."""
        text = (self.folder / path).read_text()
        assert text.count(old) == 1, old
        (self.folder / path).write_text(text.replace(old, new))

    def set_version(self) -> None:
        """Give the SDK a newer version."""
        pinned = f'"version": "{version(FOLDER, SDK)}"'
        self.replace(SDK_FACTS, pinned, f'"version": "{NEWER_VERSION}"')

    def change_types(self, change: Callable[[Types], object]) -> None:
        """Change the types of the SDK."""
        document = json.loads((self.folder / TYPES).read_bytes())
        change(document["definitions"])
        (self.folder / TYPES).write_text(json.dumps(document))


@pytest.fixture
def newer(tmp_path: Path) -> Newer:
    newer = Newer(tmp_path)
    newer.set_version()
    return newer


def versions(newest: str) -> list[str]:
    """Return the first lines of a report, for the newest version of the SDK."""
    older = version(FOLDER, OLDER_PACKAGE)
    return [
        f"{SDK} {version(FOLDER, SDK)}, newest {newest}",
        f"{OLDER_PACKAGE} {older}, newest {older}",
    ]


def unchanged() -> list[str]:
    return [*versions(NEWER_VERSION), f"No changes. Set {STEP}."]


def test_same_version_has_no_changes() -> None:
    assert report(FOLDER) == ([*versions(version(FOLDER, SDK)), "No changes."], 0)


def test_newer_version_without_changes_is_success(newer: Newer) -> None:
    assert report(newer.folder) == (unchanged(), 0)


def listed(newer: Newer) -> list[str]:
    """Return the list of work, without its first and last lines."""
    lines, status = report(newer.folder)
    assert status == 1, lines
    assert [*lines[:2], lines[-1]] == [*versions(NEWER_VERSION), NEXT]
    # The numbers of endpoints differ between versions of the SDK.
    return [re.sub(r"\d+ endpoints", "N endpoints", line) for line in lines[2:-1]]


def test_changes_are_grouped_by_the_work_that_they_need(newer: Newer) -> None:
    newer.change_types(change_some_types)
    newer.replace(CLIENT / "sdk.gen.js", 'url: "/regions"', 'url: "/moons"')
    newer.replace(CLIENT / "sdk.gen.d.ts", " * List API keys\n", " * @deprecated\n")
    newer.replace(
        CLIENT / "sdk.gen.d.ts", " * Retrieve current user details\n", " * **Note**: in Beta.\n"
    )

    assert listed(newer) == [
        "New endpoint: add a method",
        "  GET /moons",
        "Endpoint is gone: remove its method, or list it in UNPUBLISHED in known.py",
        "  GET /regions: neon.regions.list",
        "Deprecated endpoint: remove its method",
        "  neon.api_keys.list",
        "Stability has changed: change the last sentence of the docstring",
        "  neon.users.me (stable -> beta)",
        "New query parameter: add a keyword",
        "  neon.projects.list: parameter tag (string)",
        "New field of a body: add a keyword, or a field to its Struct",
        "  EndpointSpec.spin (boolean): N endpoints",
        "  neon.branches.create: body field branch.moon (object)",
        "New member of an enumeration: add it",
        "  OperationAction: launch_moon: N endpoints",
        "New error status: check its exception in errors.py",
        "  neon.snapshots.get_schedule: error status 418",
        "Another type or limit: change the annotation",
        "  Snapshot.name (string, required -> string, may be null, required): N endpoints",
        "Gone: remove it from the library",
        "  OperationAction: tenant_ignore: N endpoints",
        "  Snapshot.diff_size (integer): N endpoints",
    ]


def change_some_types(types: Types) -> None:
    query = types["ListProjectsData"]["properties"]["query"]["properties"]
    query["tag"] = {"type": "string"}
    body = types["CreateProjectBranchData"]["properties"]["body"]["properties"]
    body["branch"]["properties"]["moon"] = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
    }
    types["BranchCreateRequestEndpointOptions"]["properties"]["spin"] = {"type": "boolean"}
    types["OperationAction"]["enum"].append("launch_moon")
    types["OperationAction"]["enum"].remove("tenant_ignore")
    snapshot = types["Snapshot"]
    del snapshot["properties"]["diff_size"]
    snapshot["properties"]["name"] = {"type": ["string", "null"]}
    types["GetSnapshotScheduleErrors"]["properties"]["418"] = {"type": "null"}


def set_schema(name: str, schema: Types) -> Callable[[Newer], object]:
    """Return a change that gives a type of the SDK another schema."""
    return lambda newer: newer.change_types(lambda types: types.__setitem__(name, schema))


RECURSIVE = {"type": "object", "properties": {"region": {"$ref": "#/definitions/RegionResponse"}}}
UNREADABLE: Mapping[str, tuple[Callable[[Newer], object], str]] = {
    "keyword": (
        set_schema("RegionResponse", {"allOf": []}),
        "unknown form: the type of 'RegionResponse' has the unknown keyword allOf. Extend ",
    ),
    "union of types": (
        set_schema("RegionResponse", {"type": ["string", "number"]}),
        "unknown form: the type of 'RegionResponse' is string or number. Extend ",
    ),
    "missing type": (
        lambda newer: newer.change_types(lambda types: types.pop("ListProjectsData")),
        "unknown form: KeyError: 'ListProjectsData'. Extend ",
    ),
    "call": (
        lambda newer: newer.replace(
            CLIENT / "sdk.gen.js", "const getActiveRegions = (options)", "function (options)"
        ),
        "unknown form: sdk.gen.js or sdk.gen.d.ts has a new form of getActiveRegions. Extend ",
    ),
    "recursive type": (
        set_schema("RegionResponse", RECURSIVE),
        "A type of the newest SDK contains itself. Extend ",
    ),
    "no types": (
        lambda newer: (newer.folder / TYPES).unlink(),
        "is incomplete: it has no types.json. Run make drift again.",
    ),
    "no older description": (
        lambda newer: (newer.folder / "node_modules" / OLDER_PACKAGE).unlink(),
        "is incomplete: [Errno 2] No such file or directory",
    ),
}
"""Changes of the packages, each with the error that it causes."""


@pytest.mark.parametrize(("change", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_unknown_form_is_an_error_of_one_line(
    newer: Newer, change: Callable[[Newer], object], message: str
) -> None:
    change(newer)
    [line], status = report(newer.folder)
    assert message in line
    assert status == 2


def test_program_prints_the_report_and_exits_with_its_status(
    newer: Newer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["drift", str(newer.folder)])
    with pytest.raises(SystemExit) as success:
        main()
    assert (success.value.code, capsys.readouterr().out.splitlines()) == (0, unchanged())

    (newer.folder / TYPES).unlink()
    with pytest.raises(SystemExit) as failure:
        main()
    assert failure.value.code == 2
    assert "Run make drift again." in capsys.readouterr().err
