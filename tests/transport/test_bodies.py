"""Forms. JSON bodies are tested in tests/transport/test_protocol.py."""

from email.parser import BytesParser
from email.policy import HTTP
from traceback import TracebackException

import pytest

from neonctl_async import Secret
from neonctl_async.models.secret import SentSecret
from neonctl_async.transport.encoding import File, Form, encode
from neonctl_async.transport.protocol import raw_request
from tests.transport.wire import WIRE

CONTENT = b"PK\x03\x04\r\n--\r\n\x00\xff"


def test_form_has_one_part_for_each_field() -> None:
    body, content_type = encode(
        Form({"runtime": "nodejs24", "zip": File("a.zip", CONTENT, "application/zip")})
    )
    assert body is not None
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    [text, file] = BytesParser(policy=HTTP).parsebytes(head + body).iter_parts()
    assert text.get_params(header="Content-Disposition") == [("form-data", ""), ("name", "runtime")]
    assert text.get_payload(decode=True) == b"nodejs24"
    assert file.get_params(header="Content-Disposition") == [
        ("form-data", ""),
        ("name", "zip"),
        ("filename", "a.zip"),
    ]
    assert file.get_content_type() == "application/zip"
    assert CONTENT in body


def test_text_of_a_form_is_utf8() -> None:
    body, _ = encode(Form({"environment": '{"A":"ü"}'}))
    assert body is not None
    assert '\r\n\r\n{"A":"ü"}\r\n--'.encode() in body


def test_each_form_has_its_own_boundary() -> None:
    assert encode(Form({}))[1] != encode(Form({}))[1]


def test_request_has_the_content_type_of_its_form() -> None:
    call = raw_request("POST", "/x", object, body=Form({"a": "b"}))
    boundary = WIRE.headers(call, "id")["Content-Type"].removeprefix(
        "multipart/form-data; boundary="
    )
    assert call.body is not None
    assert call.body.startswith(f"--{boundary}\r\n".encode())
    assert call.body.endswith(f"--{boundary}--\r\n".encode())


def test_reprs_show_no_content() -> None:
    form = Form({"environment": "hunter2", "zip": File("a.zip", b"hunter2", "application/zip")})
    assert "hunter2" not in f"{form!r}{form.fields['zip']!r}"


@pytest.mark.parametrize(
    "body",
    [
        {"password": SentSecret("hunter2\udcff")},
        Form({"environment": Secret("hunter2\udcff")}),
    ],
)
def test_text_that_is_not_utf8_is_refused_without_its_content(body: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as UTF-8") as failure:
        encode(body)
    assert failure.value.__traceback__ is not None
    frames = failure.value.__traceback__.tb_next  # without the frame of this test
    error = TracebackException(failure.type, failure.value, frames, capture_locals=True)
    shown = "".join(error.format())
    assert "in encode" in shown
    assert "hunter2" not in shown
    assert failure.value.__context__ is None
