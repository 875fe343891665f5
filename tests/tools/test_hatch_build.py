"""The metadata for package indexes, with and without a known repository."""

import re
from pathlib import Path
from typing import Any

import pytest

from hatch_build import MetadataHook, checked, description, project_urls
from tests.support.pages import ROOT

REPOSITORY = "https://github.com/owner/name"
README = """\
# Name

<!-- clone -->

```console
$ make test
```

<!-- end of clone -->

![a picture](docs/demo.svg)

Read [the guide](docs/guide.md#first) and [the site](https://example.org).

<!-- links -->
See [the pages](docs/pages.md).
<!-- end of links -->

<!-- benchmarks: written by make bench -->

```python
import one


import two
```
"""
CODE = "```python\nimport one\n\n\nimport two\n```\n"


def test_description_without_a_repository_has_text_in_place_of_links() -> None:
    assert description(README, "", "1.2.0") == (
        f"# Name\n\nRead the guide and [the site](https://example.org).\n\n{CODE}"
    )


def test_description_with_a_repository_links_to_the_tag() -> None:
    assert description(README, REPOSITORY, "1.2.0") == (
        f"# Name\n\n![a picture]({REPOSITORY}/raw/v1.2.0/docs/demo.svg)\n\n"
        f"Read [the guide]({REPOSITORY}/blob/v1.2.0/docs/guide.md#first) and "
        "[the site](https://example.org).\n\n"
        f"See [the pages]({REPOSITORY}/blob/v1.2.0/docs/pages.md).\n\n{CODE}"
    )


def test_links_of_the_readme_lead_to_files_of_the_repository() -> None:
    text = description((ROOT / "README.md").read_text(encoding="utf-8"), REPOSITORY, "1.2.0")
    targets: list[str] = re.findall(r"\]\(([^)\s]+)\)", text)
    files = [
        re.sub(r"#.*", "", target.removeprefix(f"{REPOSITORY}/").partition("/v1.2.0/")[2])
        for target in targets
        if target.startswith(REPOSITORY)
    ]
    assert [target for target in targets if not target.startswith("https://")] == []
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_description_of_the_readme_without_a_repository_has_no_relative_link() -> None:
    text = description((ROOT / "README.md").read_text(encoding="utf-8"), "", "1.2.0")
    assert re.findall(r"\]\((?!https://)", text) == []
    assert re.findall(r"<!--|\bmake [a-z]+\b|## Documentation", text) == []


def test_project_urls_depend_on_the_repository() -> None:
    assert project_urls("", "1.2.0") == {}
    assert project_urls(REPOSITORY, "1.2.0") == {
        "Homepage": REPOSITORY,
        "Documentation": f"{REPOSITORY}/blob/v1.2.0/README.md",
        "Source": REPOSITORY,
        "Issues": f"{REPOSITORY}/issues",
        "Changelog": f"{REPOSITORY}/blob/v1.2.0/CHANGELOG.md",
    }
    for page in ("README.md", "CHANGELOG.md"):
        assert (ROOT / page).is_file()


def test_final_slash_of_a_repository_is_ignored() -> None:
    assert checked(f"{REPOSITORY}/") == REPOSITORY
    assert checked("") == ""


@pytest.mark.parametrize(
    "repository",
    [
        "owner/name",
        "http://github.com/owner/name",
        "https://github.com",
        "https://github.com/owner",
        "https://github.com//",
        "https://github.com/owner/name.git",
        "https://token@github.com/owner/name",
        "https://a/b/ c",
    ],
)
def test_wrong_address_of_a_repository_is_reported(repository: str) -> None:
    with pytest.raises(ValueError, match="expected an address such as") as caught:
        checked(repository)
    assert repr(repository) in str(caught.value)


@pytest.mark.parametrize("config", [{}, {"repository": REPOSITORY}])
def test_hook_sets_the_description_and_the_urls(tmp_path: Path, config: dict[str, str]) -> None:
    (tmp_path / "README.md").write_text(README)
    metadata: dict[str, Any] = {"version": "1.2.0"}
    settings = {**config, "extras": {"local": ["neonctl-local=={version}"]}}
    MetadataHook(str(tmp_path), settings).update(metadata)
    repository = config.get("repository", "")
    assert metadata["optional-dependencies"] == {"local": ["neonctl-local==1.2.0"]}
    assert metadata["urls"] == project_urls(repository, "1.2.0")
    assert metadata["readme"] == {
        "content-type": "text/markdown",
        "text": description(README, repository, "1.2.0"),
    }
