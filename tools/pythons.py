"""Finds the CPythons of this machine that the project runs on.

``pythons.py`` prints the oldest and the newest version, ``pythons.py 3.12`` the path of one.
Runs on any Python 3, so that it can find a better one.
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
    """Names that tell their version, on the PATH and among those of pyenv, then plain ones."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    folders += sorted(glob.glob(os.path.join(glob.escape(pyenv), "versions", "3.*", "bin")))
    for name in ("python3.[0-9]*", "python3"):
        for folder in folders:
            for path in sorted(glob.glob(os.path.join(glob.escape(folder), name))):
                if path.rpartition("python")[2].replace(".", "").isdigit():
                    yield path


def version_of(path):
    """The version as a tuple, None for what does not run or cannot make environments."""
    try:
        told = subprocess.run(
            [path, "-c", PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = told.stdout.decode().split()
    if told.returncode != 0 or len(words) != 4 or words[0] != "CPython":
        return None
    return tuple(int(word) for word in words[1:])


def main():
    """Print what was asked for."""
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
        wanted = tuple(int(part) for part in sys.argv[1].split("."))
        print(found[wanted])
    else:
        print(*dict.fromkeys("{}.{}".format(*version) for version in (min(found), max(found))))


if __name__ == "__main__":
    main()
