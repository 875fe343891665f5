from neonctl_async.types import Role
from tests.models.records import ROLE, decode


def test_listed_role_has_no_password() -> None:
    role = decode(Role, ROLE)
    assert (role.branch_id, role.name, role.password) == ("br-1", "owner", None)
