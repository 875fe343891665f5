"""The effect of each message in each phase of a server connection, as two tables. Pure: no I/O.

The rules come from ``PostgresMain`` and ``CopyGetData`` in Postgres. A client has at most one
request in progress. Later messages wait until the server is ready, because until then the pooler
does not know how the server will treat them: after an error, a server skips messages. So the pooler
never expects a response to a message that the server skips.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum, auto
from typing import Final, TypeAlias

STREAMED: Final = 0
"""The kind of messages that are passed on in parts, such as copied data, rows and notices."""
INVALID: Final = ord("?")
"""The kind of a frame that stands for an invalid message, with a wrong type or length."""


class Phase(IntEnum):
    """What a server connection is doing for its client."""

    IDLE = auto()
    """It is not serving a client. This is also the phase of a client without a server."""
    SETTINGS = auto()
    """It is executing the pooler's query that applies a client's settings."""
    READY = auto()
    """It is waiting for a request, in a transaction or at the start of one."""
    SIMPLE = auto()
    """It is executing a query or a function call, and will be ready afterwards."""
    SIMPLE_COPY = auto()
    """It is waiting for the copied data of a query."""
    EXTENDED = auto()
    """It is executing messages of the extended protocol. Some responses have not arrived yet."""
    SETTLING = auto()
    """Like EXTENDED, but the client's next message is held until all responses have arrived."""
    SETTLED = auto()
    """It has responded to all extended-protocol messages, and is waiting for more, or for Sync."""
    EXTENDED_COPY = auto()
    """It is waiting for the copied data of an Execute."""
    SKIPPING = auto()
    """It has reported an error, and is skipping everything until Sync."""
    SYNCING = auto()
    """It has received Sync, and will be ready once it has responded."""
    RESETTING = auto()
    """It is executing the pooler's query that removes the session's state."""


class Effect(Enum):
    """What the pooler does with a client's message."""

    SEND = auto()
    """Send it to the server."""
    HOLD = auto()
    """Keep it, and all later messages, until the phase changes."""
    SETTLE = auto()
    """Keep it, as with HOLD, and send Flush: the next effect depends on the server's responses."""
    DROP = auto()
    """Ignore it, as the server would."""
    END = auto()
    """Close the client's connection."""
    REFUSE = auto()
    """Close the client's connection with an error, as the server would."""


_COPIED = b"\0cf"
"""CopyData, CopyDone and CopyFail. Outside a copy, servers ignore them."""
_ALL = b"QFPBDCESH\0cfX?"

FromClient: TypeAlias = Mapping[Phase, Mapping[int, tuple[Effect, Phase]]]
FromServer: TypeAlias = Mapping[Phase, Mapping[int, Phase]]

CLIENT_ROWS: Final = (
    (Phase.IDLE, b"QFPBDCES", Effect.HOLD, Phase.IDLE),
    (Phase.IDLE, b"H" + _COPIED, Effect.DROP, Phase.IDLE),
    (Phase.IDLE, b"X", Effect.END, Phase.IDLE),
    (Phase.IDLE, b"?", Effect.REFUSE, Phase.IDLE),
    (Phase.SETTINGS, _ALL, Effect.HOLD, Phase.SETTINGS),
    (Phase.READY, b"QF", Effect.SEND, Phase.SIMPLE),
    (Phase.READY, b"PBDCE", Effect.SEND, Phase.EXTENDED),
    (Phase.READY, b"S", Effect.SEND, Phase.SYNCING),
    (Phase.READY, b"H" + _COPIED, Effect.DROP, Phase.READY),
    (Phase.READY, b"X", Effect.END, Phase.READY),
    (Phase.READY, b"?", Effect.REFUSE, Phase.READY),
    (Phase.SIMPLE, _ALL, Effect.HOLD, Phase.SIMPLE),
    (Phase.SIMPLE_COPY, b"\0", Effect.SEND, Phase.SIMPLE_COPY),
    (Phase.SIMPLE_COPY, b"cf", Effect.SEND, Phase.SIMPLE),
    (Phase.SIMPLE_COPY, b"SH", Effect.DROP, Phase.SIMPLE_COPY),
    (Phase.SIMPLE_COPY, b"QFPBDCE?", Effect.REFUSE, Phase.SIMPLE_COPY),
    (Phase.SIMPLE_COPY, b"X", Effect.END, Phase.SIMPLE_COPY),
    (Phase.EXTENDED, b"PBDCEH", Effect.SEND, Phase.EXTENDED),
    (Phase.EXTENDED, b"S", Effect.SEND, Phase.SYNCING),
    (Phase.EXTENDED, b"QF" + _COPIED, Effect.SETTLE, Phase.SETTLING),
    (Phase.EXTENDED, b"X", Effect.END, Phase.EXTENDED),
    (Phase.EXTENDED, b"?", Effect.REFUSE, Phase.EXTENDED),
    (Phase.SETTLING, _ALL, Effect.HOLD, Phase.SETTLING),
    (Phase.SETTLED, b"QF", Effect.SEND, Phase.SIMPLE),
    (Phase.SETTLED, b"PBDCE", Effect.SEND, Phase.EXTENDED),
    (Phase.SETTLED, b"S", Effect.SEND, Phase.SYNCING),
    (Phase.SETTLED, b"H" + _COPIED, Effect.DROP, Phase.SETTLED),
    (Phase.SETTLED, b"X", Effect.END, Phase.SETTLED),
    (Phase.SETTLED, b"?", Effect.REFUSE, Phase.SETTLED),
    (Phase.EXTENDED_COPY, b"\0", Effect.SEND, Phase.EXTENDED_COPY),
    (Phase.EXTENDED_COPY, b"cf", Effect.SEND, Phase.EXTENDED),
    (Phase.EXTENDED_COPY, b"SH", Effect.DROP, Phase.EXTENDED_COPY),
    (Phase.EXTENDED_COPY, b"QFPBDCE?", Effect.REFUSE, Phase.EXTENDED_COPY),
    (Phase.EXTENDED_COPY, b"X", Effect.END, Phase.EXTENDED_COPY),
    (Phase.SKIPPING, b"S", Effect.SEND, Phase.SYNCING),
    (Phase.SKIPPING, b"QFPBDCEH" + _COPIED, Effect.DROP, Phase.SKIPPING),
    (Phase.SKIPPING, b"X", Effect.END, Phase.SKIPPING),
    (Phase.SKIPPING, b"?", Effect.REFUSE, Phase.SKIPPING),
    (Phase.SYNCING, _ALL, Effect.HOLD, Phase.SYNCING),
    (Phase.RESETTING, _ALL, Effect.HOLD, Phase.RESETTING),
)
"""The phase, the client's message types, their effect, and the next phase."""

SERVER_ROWS: Final = (
    (Phase.IDLE, b"E", Phase.IDLE),  # the server ends the session
    (Phase.SETTINGS, b"CE", Phase.SETTINGS),
    (Phase.SETTINGS, b"Z", Phase.READY),
    (Phase.READY, b"E", Phase.READY),  # the server ends the session
    (Phase.SIMPLE, b"TCIE", Phase.SIMPLE),
    (Phase.SIMPLE, b"G", Phase.SIMPLE_COPY),
    (Phase.SIMPLE, b"Z", Phase.READY),
    (Phase.SIMPLE_COPY, b"E", Phase.SIMPLE),
    (Phase.EXTENDED, b"123TnCsI", Phase.EXTENDED),
    (Phase.EXTENDED, b"G", Phase.EXTENDED_COPY),
    (Phase.EXTENDED, b"E", Phase.SKIPPING),
    (Phase.SETTLING, b"123TnCsI", Phase.SETTLING),
    (Phase.SETTLING, b"G", Phase.EXTENDED_COPY),
    (Phase.SETTLING, b"E", Phase.SKIPPING),
    (Phase.SETTLED, b"E", Phase.SETTLED),  # the server ends the session
    (Phase.EXTENDED_COPY, b"E", Phase.SKIPPING),
    (Phase.SKIPPING, b"E", Phase.SKIPPING),  # the server ends the session
    (Phase.SYNCING, b"123TnCsI", Phase.SYNCING),
    (Phase.SYNCING, b"G", Phase.EXTENDED_COPY),  # the server ignores Sync during the copy
    (Phase.SYNCING, b"E", Phase.SYNCING),
    (Phase.SYNCING, b"Z", Phase.READY),
    (Phase.RESETTING, b"TCE", Phase.RESETTING),
    (Phase.RESETTING, b"Z", Phase.IDLE),
)
"""The phase, the server's message types, and the next phase.

Streamed messages and ParameterStatus can arrive in every phase, and do not change it. Any other
message means that the pooler and the server disagree, so the connection is closed.
"""

FROM_CLIENT: Final[FromClient] = {
    phase: {
        kind: (effect, following)
        for row_phase, kinds, effect, following in CLIENT_ROWS
        if row_phase is phase
        for kind in kinds
    }
    for phase in Phase
}
FROM_SERVER: Final[FromServer] = {
    phase: {
        kind: following
        for row_phase, kinds, following in SERVER_ROWS
        if row_phase is phase
        for kind in kinds
    }
    | dict.fromkeys(b"\0S", phase)
    for phase in Phase
}
OURS: Final = frozenset({Phase.SETTINGS, Phase.RESETTING})
"""The phases in which the server is executing one of the pooler's queries."""
