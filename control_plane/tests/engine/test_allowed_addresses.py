"""The addresses that a project allows."""

import json

import pytest

from neonctl_local.engine.allowed_addresses import allowed_range, refusal

ADDRESSES = [
    ("192.0.2.1", "192.0.2.1", True),
    ("192.0.2.1", "192.0.2.2", False),
    ("192.0.2.0/24", "192.0.2.255", True),
    ("192.0.2.7/24", "192.0.2.1", True),
    ("192.0.2.0/24", "192.0.3.0", False),
    ("192.0.2.1-192.0.2.9", "192.0.2.9", True),
    ("192.0.2.1 - 192.0.2.9", "192.0.2.10", False),
    ("192.0.2.1", "::ffff:192.0.2.1", True),
    ("2001:db8::/32", "2001:db8::1", True),
    ("::/0", "192.0.2.1", False),
]


@pytest.mark.fact("connections-15", "projects-7")
@pytest.mark.parametrize(("allowed", "address", "admitted"), ADDRESSES)
def test_address_is_admitted_if_an_entry_contains_it(
    allowed: str, address: str, admitted: bool
) -> None:
    settings = json.dumps({"allowed_ips": {"ips": ["198.51.100.1", allowed]}})
    assert (refusal(settings, address, protected=False) is None) is admitted


def test_list_can_apply_to_protected_branches_only() -> None:
    allowed = {"ips": ["192.0.2.1"], "protected_branches_only": True}
    settings = json.dumps({"allowed_ips": allowed})
    assert refusal(settings, "192.0.2.2", protected=False) is None
    assert "192.0.2.2 is not allowed" in (refusal(settings, "192.0.2.2", protected=True) or "")


@pytest.mark.parametrize("settings", ["{}", '{"allowed_ips": {"ips": []}}', '{"hipaa": true}'])
def test_empty_list_admits_everyone(settings: str) -> None:
    assert refusal(settings, "192.0.2.1", protected=True) is None


def test_blocked_public_connections_supersede_the_list() -> None:
    settings = '{"allowed_ips": {"ips": ["192.0.2.1"]}, "block_public_connections": true}'
    assert "blocked network" in (refusal(settings, "192.0.2.1", protected=False) or "")


@pytest.mark.parametrize("text", ["", "home", "192.0.2.9-192.0.2.1", "192.0.2.1-::1", "::/129"])
def test_text_that_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        allowed_range(text)
