"""Completes the metadata of the archives: extras, project URLs, and the description for indexes.

The setting ``repository`` in ``pyproject.toml`` is the address of the repository. While it is
empty, the metadata has no project URLs, and the description has no links to pages of the
repository. The URLs have the form that GitHub uses.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from hatchling.metadata.plugin.interface import MetadataHookInterface

ADDRESS = r"https://[^/\s?#@]+(?:/[^/\s?#]+){2,}(?<!\.git)/?"
MARKED = r"\n*<!-- {} -->\n.*?<!-- end of {} -->\n*"
COMMENT = re.compile(r"(?:\n*^<!--[^\n]*-->\n*)+", re.MULTILINE)
PICTURE = re.compile(r"^!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n+", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((?!https?:|#)([^)\s]+)\)")


class MetadataHook(MetadataHookInterface):
    """Sets the fields ``optional-dependencies``, ``readme`` and ``urls``. Hatchling finds it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields. The version is known already."""
        config = cast("dict[str, Any]", self.config)  # pyright: ignore[reportUnknownMemberType] - a dict without types
        repository = checked(config.get("repository", ""))
        version = metadata["version"]
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = description(readme, repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["optional-dependencies"] = extras(config["extras"], version)
        metadata["urls"] = project_urls(repository, version)


def checked(repository: str) -> str:
    """Return the address of the repository without a final slash."""
    if repository and not re.fullmatch(ADDRESS, repository):
        raise ValueError(
            f"the setting repository is {repository!r}: expected an address such as "
            "https://github.com/owner/name, or an empty text"
        )
    return repository.rstrip("/")


def extras(templates: Mapping[str, Sequence[str]], version: str) -> dict[str, list[str]]:
    """Return the requirements of each extra, with the version in place of ``{version}``."""
    return {
        name: [requirement.replace("{version}", version) for requirement in requirements]
        for name, requirements in templates.items()
    }


def project_urls(repository: str, version: str) -> dict[str, str]:
    """Return the URLs that a package index shows beside the description."""
    if not repository:
        return {}
    files = f"{repository}/blob/v{version}"
    return {
        "Homepage": repository,
        "Documentation": f"{files}/README.md",
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{files}/CHANGELOG.md",
    }


def description(readme: str, repository: str, version: str) -> str:
    """Return the README for readers who install with pip.

    The parts marked ``clone`` are left out. Without a repository, the parts marked ``links`` and
    the pictures are left out, too, and the text of a link replaces the link.
    """
    text = without_parts(readme, "clone")
    if repository:
        text = PICTURE.sub(rf"![\1]({repository}/raw/v{version}/\2)\n\n", text)
        text = LINK.sub(rf"[\1]({repository}/blob/v{version}/\2)", text)
    else:
        text = PICTURE.sub("", without_parts(text, "links"))
        text = LINK.sub(r"\1", text)
    return COMMENT.sub("\n\n", text).strip() + "\n"


def without_parts(text: str, mark: str) -> str:
    """Return the text without the parts between two comments with the mark."""
    return re.sub(MARKED.format(mark, mark), "\n\n", text, flags=re.DOTALL)
