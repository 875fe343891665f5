"""Texts: Retry-After headers, texts that contain secrets, members of open enumerations."""

import copy
import pickle
from math import inf

from multidict import CIMultiDict

from neonctl_async import OperationStatus, Secret
from neonctl_async.transport.protocol import retry_after
from neonctl_async.transport.redaction import MAX_CHARACTERS, hide_secrets
from neonctl_async.types import EndpointState, OperationAction
from tools.fuzz.draw import Draw

MAX_LENGTH = 64 * 1024
KEYS = ("napi_q7Zx0vJ2mW8kTb4R", "Zq7x0vJ2-mW8k.Tb4R", 'q7"Zx0=vJ2:mW8\\kTb4R', "q" * 400)


def a_retry_after(draw: Draw) -> None:
    """Check that a Retry-After header becomes a number of seconds, or is ignored."""
    seconds = retry_after(CIMultiDict({"Retry-After": draw.text(), "Date": draw.text()}))
    assert seconds is None or (isinstance(seconds, float) and 0 <= seconds < inf)


def a_text_with_the_key(draw: Draw) -> None:
    """Check that neither the key nor its first half is visible, wherever it is in a text."""
    key, length = draw.pick(KEYS), draw.pick((0, MAX_CHARACTERS - draw.byte() % 32, MAX_LENGTH))
    before, after = _repeated(draw.text(), length) + draw.text(), draw.text()
    shown = hide_secrets(f"{before}{key}{after}", Secret(key))
    assert key not in shown
    half = key[: len(key) // 2]
    assert half not in shown or half in before or half in after
    assert len(shown) <= 3 * MAX_CHARACTERS


def _repeated(text: str, length: int) -> str:
    return (text * (length // max(1, len(text)) + 1))[:length]


def a_value(draw: Draw) -> None:
    """Check that any text can be a secret or an unknown member of an enumeration."""
    text = draw.text()
    secret, other = Secret(text), Secret(draw.text())
    assert (secret == other) is (secret.reveal() == other.reveal())
    assert repr(secret) == repr(other)
    assert copy.deepcopy(secret) == secret
    for kind in (EndpointState, OperationAction, OperationStatus):
        member = kind(text)
        assert member == text
        assert member.is_known is (text in [known.value for known in kind])
        assert repr(member)
        assert pickle.loads(pickle.dumps(member)) == member
