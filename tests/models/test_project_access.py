from neonctl_async.types import JWKSCreated, ProjectPermission, TransferRequest
from tests.models.records import AT_NOON, JWKS, NOON, OPERATION, PERMISSION, decode


def test_permission_has_a_revocation_time_after_it_was_revoked() -> None:
    assert decode(ProjectPermission, PERMISSION).revoked_at is None
    assert decode(ProjectPermission, {**PERMISSION, "revoked_at": NOON}).revoked_at == AT_NOON


def test_transfer_request_has_an_expiry() -> None:
    offer = decode(TransferRequest, {"id": "t-1", "project_id": "p-1", "expires_at": NOON})
    assert offer.expires_at == AT_NOON


def test_key_set_without_branch_applies_to_all_branches() -> None:
    created = decode(JWKSCreated, {"jwks": JWKS, "operations": [OPERATION]})
    assert created.jwks.branch_id is None
    assert [operation.id for operation in created.operations] == ["op-1"]
