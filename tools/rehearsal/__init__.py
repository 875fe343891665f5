"""``python -m tools.rehearsal``: install the archives from a package index on loopback.

pip, uv and pipx install the base, each extra and all extras into fresh environments of every
supported CPython of this machine. Each environment then runs the checks of
:mod:`tools.rehearsal.probe`, the command, and the program of the quick start.
"""
