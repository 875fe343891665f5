"""Decompression: the original content or an error, and never more bytes than allowed."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.encoding import decompress

BOMB = gzip.compress(b"0" * 4_000_000)


@given(content=st.binary(), margin=st.integers(0, 1000))
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", " GZip "])
def test_gzip_body_is_decompressed(content: bytes, margin: int, encoding: str) -> None:
    assert decompress(gzip.compress(content), encoding, len(content) + margin) == content


@given(body=st.binary())
@pytest.mark.parametrize("encoding", ["", "identity"])
def test_uncompressed_body_is_unchanged(body: bytes, encoding: str) -> None:
    assert decompress(body, encoding, 10) == body


@pytest.mark.parametrize("encoding", ["gzip", "br", ""])
def test_empty_body_is_valid_in_every_encoding(encoding: str) -> None:
    assert decompress(b"", encoding, 10) == b""


@pytest.mark.parametrize("limit", [1, 1000, 3_999_999])
def test_too_large_body_is_cut_one_byte_past_the_limit(limit: int) -> None:
    assert len(decompress(BOMB, "gzip", limit)) == limit + 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"plain": true}', id="plain"),
        pytest.param(zlib.compress(b"zlib, not gzip"), id="zlib"),
        pytest.param(gzip.compress(b"cut off")[:-1], id="without the last byte"),
        pytest.param(gzip.compress(b"cut off")[:12], id="truncated"),
        pytest.param(gzip.compress(b"first") + gzip.compress(b"second"), id="two streams"),
        pytest.param(gzip.compress(b"first") + b"\0", id="an extra byte"),
        pytest.param(b"\x1f\x8b\x08" + b"\xff" * 40, id="garbage"),
    ],
)
def test_body_that_is_not_exactly_one_gzip_stream_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="gzip"):
        decompress(body, "gzip", 1000)


@given(body=st.binary(max_size=60), cut=st.integers(0, 60))
def test_garbage_is_refused_or_stays_within_the_limit(body: bytes, cut: int) -> None:
    garbage = (gzip.compress(body)[:cut] + body)[:60]
    try:
        content = decompress(garbage, "gzip", 20)
    except ValueError:
        return
    assert len(content) <= 21


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_unsupported_encoding_is_refused_by_name(encoding: str) -> None:
    with pytest.raises(ValueError, match=encoding):
        decompress(b"{}", encoding, 10)
