"""Removal of secrets from error messages and excerpts."""

import json
import traceback
from typing import Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import Secret
from neonctl_async.transport import redaction
from neonctl_async.transport.redaction import MAX_CHARACTERS, hide_secrets
from tests.support.records import API_KEY
from tests.transport.wire import api_error, invalid

OTHER_KEY = "Zq7x0vJ2-mW8k.Tb4R"
"""An API key without a known prefix. Only the client's own key may look like this."""


@pytest.mark.parametrize("name", ["code", "message", "request_id"])
def test_key_in_an_error_body_is_hidden(name: str) -> None:
    error = api_error(json.dumps({name: f"bad key {API_KEY}"}).encode(), 400)
    assert API_KEY not in f"{error} {error!r} {error.code} {error.message} {error.request_id}"


@pytest.mark.parametrize(("length", "shown"), [(0, 0), (199, 199), (200, 200), (201, 200)])
def test_excerpt_is_the_first_200_characters(length: int, shown: int) -> None:
    assert invalid(b"x" * length).excerpt == "x" * shown


def test_excerpt_counts_characters_and_not_bytes() -> None:
    assert invalid("é".encode() * 300).excerpt == "é" * 200


@pytest.mark.parametrize(
    "text",
    [
        '{"id":1,"key":"hunter2","name":"ci"}',
        '{"key" : "hunter2"}',
        '{"api_key":"hunter2"}',
        '{"PASSWORD":"hunter2"}',
        '{"password":"hunter2',
        '{"password":"a\\"hunter2"}',
        '{"password":"a\\\\","token":"hunter2"}',
        '{"connection_uri":"postgresql://ada:hunter2@h/db"}',
        '{"connection_uris":["postgresql://ada:hunter2@h/db"]}',
        '{"secret_server_key":"hunter2","s3_secret_access_key":"hunter2"}',
        '{"client_secret":"hunter2","api_token":"hunter2"}',
        '{"DB_PASS":"hunter2","pwd":"hunter2","smtp_passwd":"hunter2","passphrase":"hunter2"}',
        "cannot reach postgresql://ada:hunter2@h/db now",
        "cannot reach postgresql://ada:hunter2",
        "cannot reach postgresql://ada:pa'hunter2@h/db now",
        "cannot reach postgresql://:hunter2@h/db",
        "Authorization: Bearer hunter2",
        "the key napi_hunter2 is bad",
        "the key neon_org_key_hunter2 is bad",
        '{"message":"{\\"password\\":\\"hunter2\\"}"}',
        '{"accessToken":"hunter2"}',
        '{"apiKey":"hunter2"}',
        "host=h user=ada password=hunter2 dbname=db",
        "host=h user=ada password='hunter2' dbname=db",
        '{"message":"password=\\"hunter2\\" is wrong"}',
        '{"password":"it\'s hunter2","token":"hunter2"}',
        """{'password': "it's hunter2", 'token': 'say "hunter2"'}""",
        "<html>\npostgresql://ada:hunter2\n",
        '{"x-api-key":"hunter2"}',
        "X-Api-Key: hunter2",
        "Authorization: Basic hunter2",
        "authorization: hunter2",
        "the password npg_hunter2 is bad",
        "the access key nsk_live_hunter2 is bad",
        "the token nt_live_2cb3_hunter2 is bad",
        'password="may be hunter2" is wrong',
        "password='may be hunter2' is wrong",
    ],
)
def test_excerpt_hides_secrets(text: str) -> None:
    error = invalid(f"{text}".encode())
    shown = "".join(traceback.format_exception_only(error)) + error.excerpt
    assert "hunter2" not in shown
    assert "***" in error.excerpt


@given(before=st.text(max_size=300), after=st.text(max_size=300))
def test_own_key_is_hidden_in_every_text(before: str, after: str) -> None:
    text = before.encode(errors="replace") + API_KEY.encode() + after.encode(errors="replace")
    assert API_KEY not in str(invalid(text, list[bytes]))
    assert API_KEY not in str(api_error(text))


def test_secret_at_the_end_of_the_excerpt_is_hidden() -> None:
    for padding in range(150, 201):
        body = b"x" * padding + b'{"password":"hunter2"}'
        assert "hunt" not in invalid(body).excerpt


def test_own_key_at_the_cut_of_the_text_is_hidden() -> None:
    for cut in range(len(OTHER_KEY)):
        text = "x" * (MAX_CHARACTERS - len(OTHER_KEY) + cut) + OTHER_KEY
        assert hide_secrets(text, Secret(OTHER_KEY)).strip("x*") == ""


def test_key_in_a_decoding_error_is_hidden() -> None:
    error = invalid(f'"{API_KEY}"'.encode(), cast("type[object]", Literal["on", "off"]))
    assert "Invalid enum value" in str(error.__cause__)
    assert API_KEY not in f"{error} {error.__cause__!r}"


@pytest.mark.parametrize("text", ["://:", '"_', "bearer ", "napi_", "\\", '"key":"\\', "a_"])
def test_redaction_takes_linear_time(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # With quadratic time, the test would exceed its time limit.
    monkeypatch.setattr(redaction, "MAX_CHARACTERS", 2**18)
    assert hide_secrets(text * (2**18 // len(text)) + " x", Secret(OTHER_KEY))


def test_text_without_secrets_is_unchanged() -> None:
    text = '{"id":1,"name":"monkey","keyboard":"azerty","url":"https://h.example.com:8443/x y"}'
    assert invalid(text.encode()).excerpt == text
