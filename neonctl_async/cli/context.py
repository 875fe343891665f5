"""The ``.neon`` file: the default project, organization and branch of a directory.

Neon's own command line reads and writes the same file.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

FILE_NAME: Final = ".neon"
MAX_BYTES: Final = 65_536
"""The size limit of the file. Neon's command line writes about 100 bytes."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the file that commands use."""

    project_id: str | None = msgspec.field(name="projectId", default=None)
    org_id: str | None = msgspec.field(name="orgId", default=None)
    branch: str | None = None
    """The name or the id of a branch."""
    branch_id: str | None = msgspec.field(name="branchId", default=None)
    """The branch, in files written by older versions of Neon's command line."""

    def branch_of(self, project_id: str) -> str | None:
        """Return the branch, or None if the context is for another project."""
        return (self.branch or self.branch_id) if self.project_id == project_id else None


def load(file: str | None) -> Context:
    """Return the context in ``file``, or in the nearest ``.neon`` file if it is None.

    Returns an empty context if there is no ``.neon`` file. Raises ValueError if the file cannot be
    used, or if ``file`` does not exist.
    """
    path = nearest() if file is None else Path(file)
    return Context() if path is None else parse(path)


def load_usable(file: str | None) -> Context:
    """Return the context as :func:`load` does, or an empty one if the file cannot be used."""
    try:
        return load(file)
    except ValueError:
        return Context()


def nearest() -> Path | None:
    """Return the nearest ``.neon`` file, or None.

    Like Neon's command line, searches the current directory and its parents, and stops before the
    home directory or the root.
    """
    with suppress(OSError):  # the current directory was removed
        for directory in _searched(Path.cwd()):
            path = directory / FILE_NAME
            if os.path.isfile(path):  # noqa: PTH113 - Path.is_file() raises PermissionError
                return path
    return None


def _searched(here: Path) -> Iterator[Path]:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises RuntimeError
    for directory in (here, *here.parents):
        if directory in {home, Path(directory.anchor)}:
            return
        yield directory


def parse(path: Path) -> Context:
    """Return the context in a file. Raises ValueError if the file cannot be used."""
    try:
        return msgspec.convert(read(path), Context)
    except msgspec.ValidationError as error:
        raise ValueError(_unusable(path, error)) from None


def _unusable(path: Path, error: Exception) -> str:
    return f"{path} is not a context file: {error}: correct the file, or remove it"


def read(path: Path) -> dict[str, object]:
    """Return all keys of a context file. Raises ValueError if the file cannot be used."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is not a file: expected a JSON file like {FILE_NAME}")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} is larger than {MAX_BYTES} bytes: it is no context file")
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(_unusable(path, error)) from None


def path_to_write(file: str | None) -> Path:
    """Return the file to write a context to: ``file``, the nearest one, or a new one.

    Raises ValueError for a new file in a place where :func:`nearest` does not search.
    """
    if file is not None:
        return Path(file)
    if found := nearest():
        return found
    try:
        here = Path.cwd()
    except OSError as error:
        raise ValueError(f"the current directory cannot be used: {error.strerror}") from None
    if not any(_searched(here)):
        raise ValueError(
            f"{here / FILE_NAME} would never be read: commands ignore the file of the home "
            "directory and of the root; change to the directory of a project, or pass "
            "--context-file"
        )
    return here / FILE_NAME


def merge(keys: dict[str, object], context: Context) -> dict[str, object]:
    """Return the keys of a file, updated with those of a context."""
    own = {field.encode_name for field in msgspec.structs.fields(Context)}
    chosen = msgspec.to_builtins(context)
    return {key: value for key, value in keys.items() if key not in own} | {
        key: value for key, value in chosen.items() if value is not None
    }


def write(path: Path, keys: dict[str, object]) -> None:
    """Replace a context file atomically, keeping its permissions. Raises OSError."""
    target = path.resolve()  # a symbolic link remains a link
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    data = msgspec.json.format(msgspec.json.encode(keys), indent=2) + b"\n"
    try:
        with temporary.open("xb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def is_ignored(path: Path) -> bool:
    """Return True if Git ignores a file because of its name, or if there is no repository.

    Reads the ``.gitignore`` files from the directory of the file up to that of the repository.
    """
    lines: set[str] = set()
    for directory in path.resolve().parents:
        with (
            suppress(OSError),
            (directory / ".gitignore").open(encoding="utf-8", errors="replace") as file,
        ):
            lines.update(line.strip() for line in file)
        if (directory / ".git").exists():
            return not lines.isdisjoint({path.name, f"/{path.name}", f"{path.name}*"})
    return True
