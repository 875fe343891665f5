"""An Airflow of its own for the tests of a process."""

import json
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from neonctl_local import LocalControlPlane
from tests.support.pages import ROOT

EXAMPLE = ROOT / "examples" / "airflow_branches"

# Only the environment of make engines contains the engines.
HAS_ENGINES = find_spec("airflow") is not None
collect_ignore_glob = [] if HAS_ENGINES else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    """Configure Airflow before a test imports it: it reads its settings only once."""
    if not HAS_ENGINES:
        return
    folder = tempfile.TemporaryDirectory(prefix="engines-")
    config.add_cleanup(folder.cleanup)
    os.environ |= {
        "AIRFLOW_HOME": folder.name,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(EXAMPLE / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PREFECT_HOME": str(Path(folder.name) / "prefect"),
    }


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Mark all tests of this folder."""
    if isinstance(collector, pytest.Module):
        collector.add_marker(pytest.mark.engines)
        collector.add_marker(pytest.mark.process)
        # The engines and their packages have warnings of their own.
        collector.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def connection(control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Airflow connection to the local control plane."""
    value = {
        "conn_type": "http",
        "host": control_plane.base_url,
        "password": control_plane.api_key,
    }
    monkeypatch.setenv("AIRFLOW_CONN_NEON_DEFAULT", json.dumps(value))
