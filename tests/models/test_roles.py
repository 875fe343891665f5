from neonctl_async.types import Role
from tests.models.records import ROLE, decode


def test_listed_role_has_no_password() -> None:
    role = decode(Role, ROLE)
    assert (role.branch_id, role.name, role.password) == ("br-1", "owner", None)


def test_password_is_a_secret() -> None:
    role = decode(Role, {**ROLE, "password": "hunter2"})
    assert role.password is not None
    assert role.password.reveal() == "hunter2"
    assert "hunter2" not in repr(role)
