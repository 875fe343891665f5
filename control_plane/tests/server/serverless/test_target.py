"""The header with the connection string."""

import pytest

from neonctl_local.server.serverless.target import parse_target


def test_parts_are_decoded() -> None:
    target = parse_target("postgresql://a%40b:p%3Aw@EP-1.db.test/my%20db?options=endpoint%3Dep-1")
    assert target.parameters == {
        "user": "a@b",
        "database": "my db",
        "client_encoding": "UTF8",
        "options": "endpoint=ep-1",
    }
    assert (target.password, target.server_name) == ("p:w", "ep-1.db.test")
    assert "p:w" not in repr(target)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "invalid header: neon-connection-string"),
        ("http://a:b@h/d", "incorrect scheme"),
        ("postgres://a:b@h", "missing database name"),
        ("postgres://h/d", "missing username"),
        ("postgres://a@h/d", "missing authentication credentials: required password"),
        ("postgres://a:b@/d", "missing hostname"),
        ("postgres://a:b@[x/d", "invalid connection string"),
        ("postgres://a%00:b@h/d", "NUL"),
        ("postgres://a:b@ep-\udcff.test/d", "invalid header: neon-connection-string"),
    ],
)
def test_incomplete_header_is_refused_with_the_reason(header: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_target(header)
