"""Records of the API that pages show: secrets in them stay out of logs."""

import pytest

from neonctl_local.console.access.sessions import NewPassword
from neonctl_local.console.pages.connections import Connection
from neonctl_local.console.records import ConnectionUri, Password, Role, RoleChanged

SECRET = "npg_secret"
ROLE = Role(name="reader", created_at="", authentication_method="password", password=SECRET)
URI = f"postgresql://reader:{SECRET}@localhost/db"


@pytest.mark.parametrize(
    "record",
    [
        ROLE,
        RoleChanged(role=ROLE, operations=[]),
        Password(SECRET),
        NewPassword("reader", SECRET),
        ConnectionUri(URI),
        Connection(choose_url="", database="db", role="reader", pooled=False, uri=URI),
    ],
    ids=lambda record: type(record).__name__,
)
def test_no_text_of_a_record_contains_a_password(record: object) -> None:
    assert SECRET not in f"{record!r} {record}"
