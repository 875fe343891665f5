"""The metadata for package indexes and installers.

``make dist`` also runs ``twine check``: the description renders without a warning.
"""

import html
import re
import tarfile
import tomllib
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from readme_renderer import markdown

from hatch_build import project_urls
from neonctl_async import __version__
from tests.release.conftest import ROOT

pytestmark = pytest.mark.release

HEADINGS = ("A database for each test", "What it saves")


def read(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"neonctl_async-{__version__}.dist-info/{name}")


@pytest.fixture
def metadata(wheel: Path) -> Metadata:
    return Metadata.from_email(read(wheel, "METADATA"), validate=True)


@pytest.fixture
def description(metadata: Metadata) -> str:
    assert metadata.description is not None
    assert metadata.description_content_type == "text/markdown"
    return metadata.description


def test_wheel_and_sdist_have_the_same_metadata(wheel: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        metadata = archive.extractfile(f"neonctl_async-{__version__}/PKG-INFO")
        assert metadata is not None
        assert metadata.read() == read(wheel, "METADATA")


def test_name_version_and_license_are_set(metadata: Metadata) -> None:
    assert (metadata.name, str(metadata.version)) == ("neonctl-async", __version__)
    assert (metadata.license_expression, metadata.license_files) == ("Apache-2.0", ["LICENSE"])
    assert str(metadata.requires_python) == ">=3.11"


def test_package_requires_four_packages_and_offers_seven_extras(metadata: Metadata) -> None:
    requirements = metadata.requires_dist or []
    required = {requirement.name for requirement in requirements if requirement.marker is None}
    assert required == {"aiohttp", "anyio", "msgspec", "tenacity"}
    assert metadata.provides_extra == [
        *("cli", "console", "local", "otel", "postgres", "redis", "testing")
    ]


def test_extras_require_the_local_control_plane_of_the_same_version(metadata: Metadata) -> None:
    required = [str(each).replace('"', "'") for each in metadata.requires_dist or []]
    assert sorted(each for each in required if each.startswith("neonctl-local")) == [
        f"neonctl-local=={__version__}; extra == 'local'",
        f"neonctl-local=={__version__}; extra == 'testing'",
        f"neonctl-local[console]=={__version__}; extra == 'console'",
        f"neonctl-local[postgres]=={__version__}; extra == 'postgres'",
    ]


def test_local_control_plane_has_the_same_version_and_does_not_require_the_client(
    local_wheel: Path, local_sdist: Path
) -> None:
    name = f"neonctl_local-{__version__}"
    with zipfile.ZipFile(local_wheel) as archive:
        text = archive.read(f"{name}.dist-info/METADATA")
    local = Metadata.from_email(text, validate=True)
    assert (local.name, str(local.version)) == ("neonctl-local", __version__)
    required = {each.name for each in local.requires_dist or [] if each.marker is None}
    assert required == {"aiohttp", "msgspec"}
    assert local.provides_extra == ["console", "postgres"]
    with tarfile.open(local_sdist) as archive:
        metadata = archive.extractfile(f"{name}/PKG-INFO")
        assert metadata is not None
        assert metadata.read() == text


def test_wheel_registers_a_command_and_a_pytest_plugin(wheel: Path) -> None:
    entry_points = ConfigParser()
    entry_points.read_string(read(wheel, "entry_points.txt").decode())
    assert {group: dict(entry_points[group]) for group in entry_points.sections()} == {
        "console_scripts": {"neonctl-async": "neonctl_async.__main__:main"},
        "pytest11": {"neonctl-async": "pytest_neonctl_async.plugin"},
    }


def test_summary_authors_and_keywords_are_set(metadata: Metadata) -> None:
    assert metadata.summary
    assert metadata.author == "The maintainers of neonctl-async"
    assert {"neon", "postgres", "asyncio"} < {*(metadata.keywords or [])}


def test_classifiers_name_each_tested_version_of_python(metadata: Metadata) -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    [versions] = {*re.findall(r"python: \[(.+)\]", workflow)}
    named = {
        classifier.rpartition(" ")[2]
        for classifier in metadata.classifiers or []
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", classifier)
    }
    assert named == {version.strip('"') for version in versions.split(", ")}


def test_project_urls_are_those_of_the_repository(metadata: Metadata) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]
    repository = settings["hooks"]["custom"]["repository"]
    assert (metadata.project_urls or {}) == project_urls(repository, __version__)


def test_rendered_description_has_no_dead_link(description: str) -> None:
    rendered = markdown.render(description)
    assert rendered is not None
    targets = re.findall(r'(?:href|src)="([^"]*)"', rendered)
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    anchors = {target[1:] for target in targets if target.startswith("#")}
    assert anchors <= {*re.findall(r'id="([^"]*)"', rendered)}


def test_rendered_description_suits_readers_who_install_by_pip(description: str) -> None:
    rendered = markdown.render(description)
    assert rendered is not None
    text = html.unescape(re.sub(r"<[^>]*>", "", rendered))
    assert re.findall(r"\bmake [a-z]+|\bclone\b|pip install \'?\.", text) == []
    assert re.search(r"pip install '?neonctl-async", text)
    assert [heading for heading in HEADINGS if heading not in text] == []


def test_changelog_starts_with_this_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__
