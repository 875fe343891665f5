"""Extensions that every role may create, although Postgres reserves them for superusers."""

import os
import re
import shutil
import threading
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount, give
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.configuration import GROUP
from neonctl_local.postgres.programs import ProgramTimeoutError, run_program
from neonctl_local.postgres.servers.scheduling import logger

TRUSTED: Final = frozenset(
    "address_standardizer address_standardizer_data_us autoinc bloom earthdistance h3 h3_postgis"
    " hll hypopg insert_username intagg ip4r moddatetime pg_ivm pg_partman pg_prewarm"
    " pg_stat_statements pg_uuidv7 pgrouting pgrowlocks pgstattuple pgtap plpgsql_check postgis"
    " postgis_raster postgis_sfcgal postgis_tiger_geocoder postgis_topology prefix refint"
    " roaringbitmap rum semver unit vector xml2".split()
)
"""Extensions that each role may create on Neon. By default, only superusers may create them.

``dblink`` and ``postgres_fdw`` are left out: they could connect to the sockets of other clusters.
The scripts of trusted extensions run as the administrator, in a schema that a role can choose.
"""

_SAFE_SINCE: Final = {"earthdistance": 16}
"""The first version of Postgres in which roles cannot make the script call their own functions.

Before version 16, ``earthdistance`` uses the type ``cube`` of its own schema, if there is one.
"""

_RESERVED: Final = re.compile(
    r"^REVOKE ALL ON FUNCTION (pg_stat_statements_reset\(.*\)) FROM PUBLIC;$", re.MULTILINE
)
"""The statements that reserve functions for superusers. On Neon, roles may execute them too."""

_TIME_LIMIT: Final = 5.0


class TrustedExtensions:
    """Copies of Postgres that trust more extensions: one per major version, made when needed.

    Postgres finds its files relative to its own program. A copy of the program, in a directory with
    links to all other files, therefore uses changed control files and scripts.
    """

    def __init__(self, directory: Path, account: ServerAccount | None) -> None:
        self._directory = directory
        self._account = account
        self._programs: dict[int, Path] = {}
        self._lock = threading.Lock()

    def program(self, installation: Installation) -> Path:
        """Return the path of the ``postgres`` program that trusts the extensions. This blocks."""
        with self._lock:
            if installation.major not in self._programs:
                self._programs[installation.major] = self._make(installation)
            return self._programs[installation.major]

    def _make(self, installation: Installation) -> Path:
        postgres = installation.program("postgres")
        controls = _controls(installation)
        if controls is None:
            return postgres
        try:
            root = self._directory / str(installation.major)
            copy = _copy(postgres.resolve(), controls, root, trusted(installation.major))
            give(self._directory, self._account)
            run_program([copy, "--version"], timeout=_TIME_LIMIT, account=self._account)
        except (OSError, ProgramTimeoutError) as error:  # for example a directory without programs
            logger.info("Postgres %d trusts no more extensions: %s", installation.major, error)
            return postgres
        return copy


def _controls(installation: Installation) -> Path | None:
    """Return the directory with the control files of ``TRUSTED``, or None if no file is found."""
    for parent in installation.directory.resolve().parents:
        for name in ("postgresql", "", f"postgresql/{installation.major}"):
            place = parent / "share" / name / "extension"
            if any((place / f"{name}.control").is_file() for name in TRUSTED):
                return place
    return None


def trusted(major: int) -> AbstractSet[str]:
    """Return the extensions that roles may create in a version of Postgres."""
    return TRUSTED - {name for name, first in _SAFE_SINCE.items() if major < first}


def _copy(postgres: Path, controls: Path, root: Path, extensions: AbstractSet[str]) -> Path:
    """Copy the program and the changed files to the same relative places below ``root``."""
    base = Path(os.path.commonpath([postgres, controls]))
    changed = {
        file: f"{file.read_text(encoding='utf-8')}\ntrusted = true\n"
        for name in extensions
        if (file := controls / f"{name}.control").is_file()
    }
    granted = rf"\g<0>\nGRANT EXECUTE ON FUNCTION \1 TO {GROUP};"
    for script in controls.glob("pg_stat_statements--*.sql"):
        changed[script] = _RESERVED.sub(granted, script.read_text(encoding="utf-8"))
    own = {postgres, *postgres.parents, controls, *controls.parents}
    for directory in sorted(path for path in own if path.is_relative_to(base) and path.is_dir()):
        target = root / directory.relative_to(base)
        target.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            if path not in own and path not in changed:
                (target / path.name).symlink_to(path)
    for file, text in changed.items():
        (root / file.relative_to(base)).write_text(text, encoding="utf-8")
    return Path(shutil.copy2(postgres, root / postgres.relative_to(base)))
