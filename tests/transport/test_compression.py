"""Compressed bodies: the content that was meant, or a refusal, and never more than allowed."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.compression import decompress

BOMB = gzip.compress(b"0" * 4_000_000)


@given(content=st.binary(), room=st.integers(0, 1000))
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", " GZip "])
def test_gzip_comes_out_as_it_went_in(content: bytes, room: int, encoding: str) -> None:
    assert decompress(gzip.compress(content), encoding, len(content) + room) == content


@given(body=st.binary())
@pytest.mark.parametrize("encoding", ["", "identity"])
def test_what_is_not_compressed_stays_as_it_is(body: bytes, encoding: str) -> None:
    assert decompress(body, encoding, 10) == body


@pytest.mark.parametrize("encoding", ["gzip", "br", ""])
def test_nothing_is_nothing_whatever_its_encoding(encoding: str) -> None:
    assert decompress(b"", encoding, 10) == b""


@pytest.mark.parametrize("limit", [1, 1000, 3_999_999])
def test_of_what_grows_past_the_bound_one_byte_more_comes_out(limit: int) -> None:
    assert len(decompress(BOMB, "gzip", limit)) == limit + 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"plain": true}', id="plain"),
        pytest.param(zlib.compress(b"not gzip, though alike"), id="zlib"),
        pytest.param(gzip.compress(b"cut off")[:-1], id="without its last byte"),
        pytest.param(gzip.compress(b"cut off")[:12], id="without its end"),
        pytest.param(gzip.compress(b"first") + gzip.compress(b"second"), id="two of them"),
        pytest.param(gzip.compress(b"first") + b"\0", id="a byte too many"),
        pytest.param(b"\x1f\x8b\x08" + b"\xff" * 40, id="garbage"),
    ],
)
def test_what_is_not_one_whole_gzip_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="gzip"):
        decompress(body, "gzip", 1000)


@given(body=st.binary(max_size=60), cut=st.integers(0, 60))
def test_garbage_is_refused_or_stays_within_the_bound(body: bytes, cut: int) -> None:
    garbage = (gzip.compress(body)[:cut] + body)[:60]
    try:
        content = decompress(garbage, "gzip", 20)
    except ValueError:
        return
    assert len(content) <= 21


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_an_encoding_that_was_not_asked_for_is_refused_by_name(encoding: str) -> None:
    with pytest.raises(ValueError, match=encoding):
        decompress(b"{}", encoding, 10)
