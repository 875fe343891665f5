"""Finds the CPythons of this machine that the project supports.

``pythons.py`` prints the oldest and the newest version, and ``pythons.py 3.12`` prints a path. The
program runs on any Python 3, because the first Python on the PATH may be old.
"""

import glob
import os
import subprocess
import sys

OLDEST = (3, 11)
PROBE = (
    "import sys, platform, ensurepip, venv; "
    "print(platform.python_implementation(), *sys.version_info[:3])"
)


def candidates():
    """Yield the Pythons of the PATH and of pyenv. Those with a version in their name come first."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    folders += sorted(glob.glob(os.path.join(glob.escape(pyenv), "versions", "3.*", "bin")))
    for name in ("python3.[0-9]*", "python3"):
        for folder in folders:
            for path in sorted(glob.glob(os.path.join(glob.escape(folder), name))):
                if path.rpartition("python")[2].replace(".", "").isdigit():
                    yield path


def version_of(path):
    """Return the version of a CPython as a tuple, or None if it cannot create environments."""
    try:
        result = subprocess.run(
            [path, "-c", PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = result.stdout.decode().split()
    if result.returncode != 0 or len(words) != 4 or words[0] != "CPython":
        return None
    return tuple(int(word) for word in words[1:])


def main():
    """Print the versions, or the path of the requested version."""
    found = {}
    for path in candidates():
        named = tuple(int(part) for part in path.rpartition("python")[2].split("."))
        if len(named) == 2 and (named < OLDEST or named in found):
            continue
        version = version_of(path)
        if version is not None and version[:2] >= OLDEST:
            found.setdefault(version[:2], path)
    if not found:
        sys.exit("no CPython 3.11 or newer with pip and venv on this machine: install one")
    if len(sys.argv) > 1:
        paths = {"{}.{}".format(*version): path for version, path in found.items()}
        if sys.argv[1] not in paths:
            sys.exit("no CPython {} here; found: {}".format(sys.argv[1], ", ".join(sorted(paths))))
        print(paths[sys.argv[1]])
    else:
        print(*dict.fromkeys("{}.{}".format(*version) for version in (min(found), max(found))))


if __name__ == "__main__":
    main()
