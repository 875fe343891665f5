"""The status of an invitation at one time."""

import pytest
from msgspec.structs import replace

from neonctl_local.engine.invitations import status
from neonctl_local.storage.tables import Invitation

INVITATION = Invitation(
    id="1",
    org_id="org-1",
    email="ada@example.com",
    role="member",
    invited_by="2",
    invited_at=100,
    expires_at=200,
)


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ({}, 199, "pending"),
        ({}, 200, "expired"),
        ({"accepted_at": 150}, 300, "accepted"),
        ({"revoked_at": 150}, 150, "revoked"),
        ({"revoked_at": 150}, 300, "revoked"),
    ],
)
def test_invitation_stays_accepted_or_revoked_and_otherwise_expires(
    changes: dict[str, int], now: int, expected: str
) -> None:
    assert status(replace(INVITATION, **changes), now) == expected
