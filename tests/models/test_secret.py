import copy
import logging
import operator
import pickle
import traceback

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import InvalidResponseError, Secret
from neonctl_async.models.secret import encode_hook, sent_secret
from neonctl_async.types import ApiKeyCreated
from tests.models.records import decode

VALUE = "hunter2-and-more"


def test_reveal_returns_the_value() -> None:
    assert Secret(VALUE).reveal() == VALUE


@pytest.mark.parametrize(
    "text",
    [
        str(Secret(VALUE)),
        repr(Secret(VALUE)),
        f"{Secret(VALUE)}",
        f"{Secret(VALUE)!r:.40}",
        str.format("{}", Secret(VALUE)),
        operator.mod("%s %r", (Secret(VALUE), Secret(VALUE))),
        repr([Secret(VALUE)]),
        repr(ApiKeyCreated(id=1, key=Secret(VALUE))),
        repr(msgspec.structs.asdict(ApiKeyCreated(id=1, key=Secret(VALUE)))),
    ],
)
def test_text_forms_hide_the_value(text: str) -> None:
    assert "hunter" not in text
    assert "***" in text


def test_format_with_a_width_hides_the_value() -> None:
    assert f"{Secret(VALUE):>20}" == f"{Secret(VALUE)!s:>20}"


def test_text_forms_hide_the_length() -> None:
    assert str(Secret("a")) == str(Secret("a" * 99))
    assert repr(Secret("a")) == repr(Secret("a" * 99))


def test_logs_hide_the_value(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("made %s, %r", Secret(VALUE), Secret(VALUE))
    assert "made ***" in caplog.text
    assert VALUE not in caplog.text


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_raises_type_error(protocol: int) -> None:
    with pytest.raises(TypeError, match="reveal") as caught:
        pickle.dumps({"key": Secret(VALUE)}, protocol)
    assert VALUE not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "encode", [msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins]
)
@pytest.mark.parametrize("within", [Secret(VALUE), ApiKeyCreated(id=1, key=Secret(VALUE))])
def test_encoding_raises_type_error(encode: object, within: object) -> None:
    assert callable(encode)
    with pytest.raises(TypeError, match="Secret") as caught:
        encode(within)
    assert VALUE not in str(caught.value)


def test_copy_reveals_the_same_value() -> None:
    secret = Secret(VALUE)
    assert copy.copy(secret).reveal() == VALUE
    assert copy.deepcopy({"key": secret})["key"].reveal() == VALUE


@given(one=st.text(), other=st.text())
def test_secrets_with_equal_values_are_equal(one: str, other: str) -> None:
    assert (Secret(one) == Secret(other)) is (one == other)
    if one == other:
        assert hash(Secret(one)) == hash(Secret(other))


def test_secret_is_not_equal_to_a_string() -> None:
    assert Secret(VALUE) != VALUE
    assert len({Secret(VALUE), VALUE, Secret(VALUE)}) == 2


def test_hash_differs_from_the_hash_of_the_value() -> None:
    assert hash(Secret(VALUE)) != hash(VALUE)


def test_empty_secret_is_false() -> None:
    assert not Secret("")
    assert Secret("x")


@pytest.mark.parametrize("name", ["note", "value"])
def test_attributes_cannot_be_set(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Secret(VALUE), name, "x")


@pytest.mark.parametrize("value", [5, None, True, [VALUE], {"key": VALUE}])
def test_token_that_is_not_a_string_is_rejected(value: object) -> None:
    with pytest.raises(InvalidResponseError):
        decode(ApiKeyCreated, {"id": 1, "key": value})


@pytest.mark.parametrize("value", [VALUE, Secret(VALUE)])
def test_sent_secret_is_hidden_in_text_and_plain_in_a_body(value: str | Secret) -> None:
    sent = sent_secret(value)
    assert VALUE not in f"{sent} {sent!r}"
    assert msgspec.json.encode([sent], enc_hook=encode_hook) == f'["{VALUE}"]'.encode()


def test_unset_secret_is_not_sent() -> None:
    assert sent_secret(msgspec.UNSET) is msgspec.UNSET
