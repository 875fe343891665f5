"""The files that change the result of Django's migrations. Suites that run them are in
tests/pytest_neonctl_async/test_django.py."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=["migrated", "plain", "namespace"])
django.setup()
import receivers
from pytest_neonctl_async import django_files
files = django_files()
assert "migrated.migrations" not in sys.modules
print(*files, sep="\\n")
"""
MODEL = "from django.db import models\nclass One(models.Model): ...\n"
RECEIVER = """
from django.db.models.signals import post_migrate
def add_rows(**kwargs): ...
post_migrate.connect(add_rows)
"""


@pytest.mark.process
def test_files_of_django_are_migrations_and_what_replaces_them(tmp_path: Path) -> None:
    for name in ("migrated", "migrated/migrations", "plain", "namespace", "namespace/migrations"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("migrated/__init__", "migrated/migrations/__init__", "plain/__init__"):
        (tmp_path / f"{name}.py").touch()
    for app in ("migrated", "plain"):
        (tmp_path / app / "models.py").write_text(MODEL)
    (tmp_path / "receivers.py").write_text(RECEIVER)
    output = subprocess.check_output([sys.executable, "-c", SCRIPT], cwd=tmp_path, text=True)
    own = {Path(line) for line in output.splitlines() if Path(line).is_relative_to(tmp_path)}
    found = {file.relative_to(tmp_path).as_posix() for file in own}
    assert found == {"migrated/migrations", "plain/models.py", "receivers.py"}
