"""The fuzz targets on all stored inputs, without the fuzzer."""

from typing import Any

import pytest

from neonctl_async.transport.protocol import request
from tools.fuzz import requests
from tools.fuzz.findings import MISTAKES, VIOLATIONS
from tools.fuzz.seeds import seeds
from tools.fuzz.targets import TARGETS, run


@pytest.mark.parametrize("name", VIOLATIONS)
def test_fixed_violation_stays_fixed(name: str) -> None:
    assert run(VIOLATIONS[name])


@pytest.mark.parametrize("name", MISTAKES)
def test_right_behaviour_is_no_violation(name: str) -> None:
    assert run(MISTAKES[name])


@pytest.mark.parametrize("name", MISTAKES)
def test_error_without_the_name_of_the_parameter_is_a_violation(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def reject(*_args: Any, **_kwargs: Any) -> None:
        raise ValueError("the request is wrong")

    monkeypatch.setattr(requests, "request", reject)
    with pytest.raises(AssertionError):
        run(MISTAKES[name])


def test_id_of_unlimited_length_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(method: str, template: str, kind: Any, *ids: Any, query: Any) -> object:
        return request(method, template, kind, *(str(id)[:256] for id in ids), query=query)

    monkeypatch.setattr(requests, "request", accept)
    with pytest.raises(AssertionError):
        run(MISTAKES["an id that is too long"])


def test_seeds_violate_nothing() -> None:
    assert all(run(seed) for seed in seeds())


def test_every_target_has_a_seed() -> None:
    assert {seed[:1] for seed in seeds()} == TARGETS.keys()
