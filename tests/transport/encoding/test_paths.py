"""Object keys in a path. The ids in a path are tested in tests/transport/test_protocol.py."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neonctl_async.transport.protocol import request
from tests.transport.wire import BASE_URL, WIRE

TEMPLATE = "/projects/{project_id}/objects/{object_key}/download"
HOSTILE = st.text(st.sampled_from("./\\%2eEfF?#;:@&=+ \x00\r\n\u202e\ud800é\uff0eab"), max_size=8)


def url_of(key: str) -> str:
    return WIRE.url(request("GET", TEMPLATE, object, "p-1", key))


@pytest.mark.parametrize(
    ("key", "segment"),
    [
        ("cat.png", "cat.png"),
        ("app/avatars/cat 1.png", "app%2Favatars%2Fcat%201.png"),
        ("app/", "app%2F"),
        ("/app//x", "%2Fapp%2F%2Fx"),
        ("a..b/...", "a..b%2F..."),
        ("%2e%2e/%2f", "%252e%252e%2F%252f"),
        ("ü?#", "%C3%BC%3F%23"),
    ],
)
def test_key_is_one_segment(key: str, segment: str) -> None:
    assert url_of(key) == f"{BASE_URL}/projects/p-1/objects/{segment}/download"


@pytest.mark.parametrize("key", ["", ".", "..", "../x", "a/./b", "a/..", "a\\..\\b", "a/..\\b"])
def test_key_that_a_server_might_resolve_to_another_path_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"^object_key is .* which would change the path$"):
        url_of(key)


@given(key=st.one_of(st.text(), HOSTILE))
@example(key="a/b")
@example(key="%2e%2e/x")
def test_decoded_key_stays_below_its_bucket_or_is_refused(key: str) -> None:
    try:
        url = url_of(key)
    except ValueError:
        return
    assert url.isascii()
    assert not urlsplit(url).query
    assert not urlsplit(url).fragment
    segments = urlsplit(url).path.split("/")
    assert len(segments) == 8
    assert unquote(segments[6], errors="strict") == key
    assert not {".", ".."} & set(unquote(segments[6]).replace("\\", "/").split("/"))


def test_longest_key_is_sent_and_a_longer_one_is_refused() -> None:
    assert unquote(url_of("é/" * 512)).endswith("é//download")
    with pytest.raises(ValueError, match=r"^object_key is .*, with 1025 characters: expected at"):
        url_of("x" * 1025)


def test_slash_in_an_id_beside_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^project_id is 'a/b'"):
        request("GET", TEMPLATE, object, "a/b", "c/d")
