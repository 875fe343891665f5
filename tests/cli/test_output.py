"""The formats of standard output, and what commands print on standard error."""

import re

import msgspec
import pytest

from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.support.records import SECRETS

YAML_TEXTS = ["yes", "1e3", "2026-11-22", "- a: b", "null", "日本 'x'", '"', "a\nb", "0o7", " x "]


@pytest.mark.parametrize("text", YAML_TEXTS)
def test_yaml_contains_the_same_values_as_json(cli: CommandLine, quick: Served, text: str) -> None:
    project_id = quick.project().project.id
    notes = {"text": text}
    created = quick.run(
        lambda neon: neon.branches.create(project_id, name="noted", annotation_value=notes)
    )
    arguments = ("branches", "get", created.branch.id, "-p", project_id, "-o")
    shown = [cli(*arguments, format, at=quick) for format in ("json", "yaml")]
    as_json, as_yaml = (result.stdout_bytes for result in shown)
    assert msgspec.yaml.decode(as_yaml) == msgspec.json.decode(as_json)
    assert msgspec.yaml.decode(as_yaml)["annotation"]["value"] == notes


def test_verbose_prints_each_request_without_secrets(cli: CommandLine, quick: Served) -> None:
    result = cli("projects", "get", quick.project().project.id, "-v", at=quick)
    [line] = result.stderr.splitlines()
    assert re.fullmatch(r"GET /api/v2/projects/[\w-]+: 200 after \d+ ms", line)
    refused = cli("projects", "list", "-v", at=quick, NEON_API_HOST="http://127.0.0.1:1/api/v2")
    assert "GET /api/v2/projects: " in refused.stderr
    assert "connection refused" in refused.stderr
    assert not SECRETS.search(result.output_bytes + refused.output_bytes)
