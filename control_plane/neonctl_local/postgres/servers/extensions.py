"""Extensions that the roles of a project may create, although Postgres reserves them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount, give
from neonctl_local.postgres.binaries import Installation

TRUSTED: Final = ("vector",)
"""Extensions that each role may create at Neon. By default, only a superuser may."""

FIRST_MAJOR: Final = 18
"""The first version of Postgres that searches more than one directory for extensions."""


def trust_extensions(
    installations: Iterable[Installation], directory: Path, account: ServerAccount | None
) -> dict[int, str]:
    """Write control files that mark extensions as trusted into ``directory``.

    Return the setting ``extension_control_path`` for each major version that can use them.
    """
    paths: dict[int, str] = {}
    for installation in installations:
        path = directory / str(installation.major)
        if installation.major >= FIRST_MAJOR and _write_controls(installation, path):
            paths[installation.major] = f"{path}:$system"
    if paths:
        give(directory, account)
    return paths


def _write_controls(installation: Installation, path: Path) -> bool:
    """Write the control files of one version. Return whether it has such extensions."""
    shared = installation.directory.parent / "share"
    places = [
        shared / "postgresql" / "extension",
        shared / "extension",
        Path(f"/usr/share/postgresql/{installation.major}/extension"),
    ]
    files = [place / f"{name}.control" for name in TRUSTED for place in places]
    found = [file for file in files if file.is_file()]
    for file in found:
        (path / "extension").mkdir(mode=0o700, parents=True, exist_ok=True)
        scripts = str(file.parent).replace("'", "''")
        text = f"{file.read_text(encoding='utf-8')}\ndirectory = '{scripts}'\ntrusted = true\n"
        (path / "extension" / file.name).write_text(text, encoding="utf-8")
    return bool(found)
