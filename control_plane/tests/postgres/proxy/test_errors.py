"""The errors that clients receive."""

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError


def test_refusal_has_a_message_and_a_code() -> None:
    error = ComputeRefusedError("no compute", "58000")
    assert (error.message, error.code, str(error)) == ("no compute", "58000", "no compute")
    assert ComputeRefusedError("no compute").code == "XX000"


def test_protocol_error_is_a_protocol_violation_by_default() -> None:
    assert ProtocolError("invalid packet").code == "08P01"
    assert ProtocolError("version 4.0", "0A000").code == "0A000"
