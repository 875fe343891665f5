"""What every record of an answer puts up with, and what it does not."""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import msgspec
import pytest

from neonctl_async import InvalidResponseError, models
from neonctl_async.models.base import Empty, Model
from tests.models.answers import LEAST, SENT, decode


def defined_models() -> Iterator[type[Model]]:
    for module in pkgutil.iter_modules(models.__path__, f"{models.__name__}."):
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(kind, Model) and kind.__module__ == module.name and kind is not Model:
                yield kind


def fields_of(*, required: bool) -> list[tuple[type[Model], str]]:
    return [
        (kind, field.encode_name)
        for kind in LEAST
        for field in msgspec.structs.fields(kind)
        if field.required is required
    ]


def test_every_record_is_covered_here() -> None:
    assert set(defined_models()) == {*LEAST, *SENT}


@pytest.mark.parametrize("kind", LEAST)
def test_required_fields_alone_are_enough(kind: type[Model]) -> None:
    assert isinstance(decode(kind, LEAST[kind]), kind)


@pytest.mark.parametrize("kind", LEAST)
def test_unknown_fields_are_ignored(kind: type[Model]) -> None:
    more = {**LEAST[kind], "brand_new": {"a": [1, None]}}
    assert decode(kind, more) == decode(kind, LEAST[kind])


@pytest.mark.parametrize(("kind", "name"), fields_of(required=False))
def test_null_counts_as_absent(kind: type[Model], name: str) -> None:
    record = decode(kind, {**LEAST[kind], name: None})
    assert not getattr(record, name)


@pytest.mark.parametrize(("kind", "name"), fields_of(required=True))
def test_a_missing_required_field_is_refused_by_name(kind: type[Model], name: str) -> None:
    least = {field: value for field, value in LEAST[kind].items() if field != name}
    with pytest.raises(InvalidResponseError, match=f"`{name}`"):
        decode(kind, least)


@pytest.mark.parametrize("kind", LEAST)
def test_records_are_frozen(kind: type[Model]) -> None:
    record = decode(kind, LEAST[kind])
    for field in msgspec.structs.fields(kind):
        with pytest.raises(AttributeError):
            setattr(record, field.name, None)


@pytest.mark.parametrize("kind", [kind for kind in [*LEAST, *SENT] if kind is not Empty])
def test_records_take_keywords_only(kind: type[Model]) -> None:
    by_position = [None for _ in msgspec.structs.fields(kind)]
    with pytest.raises(TypeError, match="positional"):
        kind(*by_position)
