"""Extensions that the roles of a project may create, although Postgres reserves them."""

import os
import shutil
import threading
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount, give
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.programs import ProgramTimeoutError, run_program
from neonctl_local.postgres.servers.scheduling import logger

TRUSTED: Final = frozenset(
    "address_standardizer address_standardizer_data_us autoinc bloom earthdistance h3 h3_postgis"
    " hll hypopg insert_username intagg ip4r moddatetime pg_ivm pg_partman pg_prewarm"
    " pg_stat_statements pg_uuidv7 pgrouting pgrowlocks pgstattuple pgtap plpgsql_check postgis"
    " postgis_raster postgis_sfcgal postgis_tiger_geocoder postgis_topology prefix refint"
    " roaringbitmap rum semver unit vector xml2".split()
)
"""Extensions that each role may create at Neon. By default, only a superuser may.

``dblink`` and ``postgres_fdw`` are left out: they would connect to the sockets of other clusters.
"""

_TIME_LIMIT: Final = 5.0


class TrustedExtensions:
    """Copies of servers that trust more extensions, one of each version, made when it is needed.

    Postgres finds its files by the place of its own program. A copy of the program, in a directory
    with links to all other files, therefore uses changed control files.
    """

    def __init__(self, directory: Path, account: ServerAccount | None) -> None:
        self._directory = directory
        self._account = account
        self._programs: dict[int, Path] = {}
        self._lock = threading.Lock()

    def program(self, installation: Installation) -> Path:
        """Return the path of the program ``postgres`` that trusts the extensions. Blocks."""
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
            copy = _copy(postgres.resolve(), controls, self._directory / str(installation.major))
            give(self._directory, self._account)
            run_program([copy, "--version"], timeout=_TIME_LIMIT, account=self._account)
        except (OSError, ProgramTimeoutError) as error:  # for example a directory without programs
            logger.info("Postgres %d trusts no more extensions: %s", installation.major, error)
            return postgres
        return copy


def _controls(installation: Installation) -> Path | None:
    """Return the directory of the control files if any of them is to be trusted."""
    for parent in installation.directory.resolve().parents:
        for name in ("postgresql", "", f"postgresql/{installation.major}"):
            place = parent / "share" / name / "extension"
            if any((place / f"{name}.control").is_file() for name in TRUSTED):
                return place
    return None


def _copy(postgres: Path, controls: Path, root: Path) -> Path:
    """Copy the program and the control files to the same relative places below ``root``."""
    base = Path(os.path.commonpath([postgres, controls]))
    own = {postgres, *postgres.parents, controls, *controls.parents}
    for directory in sorted(path for path in own if path.is_relative_to(base) and path.is_dir()):
        target = root / directory.relative_to(base)
        target.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            if path not in own and not (directory == controls and _is_trusted(path)):
                (target / path.name).symlink_to(path)
    for file in filter(_is_trusted, controls.iterdir()):
        text = f"{file.read_text(encoding='utf-8')}\ntrusted = true\n"
        (root / file.relative_to(base)).write_text(text, encoding="utf-8")
    return Path(shutil.copy2(postgres, root / postgres.relative_to(base)))


def _is_trusted(path: Path) -> bool:
    return path.suffix == ".control" and path.stem in TRUSTED
