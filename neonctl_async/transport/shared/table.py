"""The table of a shared account: the slots of all clients, and when the request of each slot ended.

A slot is occupied from the moment it is taken until one period after the end of its request. Until
the client reports that end, the latest possible time counts, so a killed process blocks its slots
only for a limited time. Times are passed in, in whole milliseconds. ``redis_store.SCRIPT`` follows
the same rules.
"""

import sqlite3
from typing import Final

from neonctl_async.transport.shared.messages import Reply, Request

MINUTE = 60_000
"""The period of the account's limit."""
SECOND = 1_000
"""The period of the route limits."""
VALID = 2 * SECOND
"""The time for which a granted slot may be used: twice the longest time until the reply."""
AHEAD = 250
"""A slot can be taken at most this long before it becomes free. Next to three clients with round
trips of 1 ms, a client with 50 ms then gets 28 of 256 slots. With 0, it gets 4; with 500, it gets
24."""
REFILL_STEP = 3_000
"""Slots that become free within the same interval of this length, in milliseconds, are reported
together."""
CLOSING = ""
"""The route of a slot that closes the account until the slot's end, because data was lost."""

CREATE: Final = """
CREATE TABLE slots (
    account TEXT, client TEXT, number INTEGER, route TEXT, ended_at INTEGER, taken_at INTEGER,
    PRIMARY KEY (account, client, number)
) WITHOUT ROWID;
CREATE INDEX ends ON slots (account, ended_at);
"""
# Rows from the future are from before the last start of the machine: their age is unknown.
_SET_BACK = """
UPDATE slots SET ended_at = ended_at - taken_at + :now, taken_at = :now WHERE taken_at > :now
"""
_EXPIRE = "DELETE FROM slots WHERE ended_at <= ?"
_KNOWN = "SELECT 1 FROM slots WHERE (account, client, number) = (?, ?, ?)"
_WRITE = "INSERT OR REPLACE INTO slots VALUES (?, ?, ?, ?, ?, ?)"
_RETURN = "DELETE FROM slots WHERE (account, client, number) = (?, ?, ?)"
_COUNT = "SELECT count(*), count(DISTINCT client) FROM slots WHERE account = ?"
_REFILLS = """
SELECT max(ended_at) + ? - ?, count(*) FROM slots WHERE account = ? AND ended_at <= ?
GROUP BY ended_at / ? ORDER BY ended_at
"""
_CLOSED_UNTIL = "SELECT ended_at FROM slots WHERE account = ? AND ended_at > ? AND route = ''"
# While it is occupied, no slot is free. There is no such row while a slot is free.
_LAST_FREE = """
SELECT ended_at FROM slots WHERE account = :account AND ended_at > :since
AND (:route IS NULL OR route = :route) ORDER BY ended_at DESC LIMIT 1 OFFSET :limit - 1
"""


def exchange(db: sqlite3.Connection, account: str, request: Request, now: int) -> Reply:
    """Record a client's report, and grant it slots."""
    client = request.client

    def free_at(route: str | None, limit: int, period: int) -> int:
        values = {"account": account, "since": now - period, "route": route, "limit": limit}
        last = db.execute(_LAST_FREE, values).fetchone() if limit else None
        return now if last is None else min(last[0], now) + period

    db.execute(_SET_BACK, {"now": now})
    db.execute(_EXPIRE, (now - MINUTE,))
    keys = [(account, client, slot.number) for slot in request.slots]
    unknown = sum(db.execute(_KNOWN, key).fetchone() is None for key in keys)
    ends = [(account, client, *slot[:2], now - slot.age, now) for slot in request.slots]
    db.executemany(_WRITE, ends)
    db.executemany(_RETURN, [(account, client, slot.number) for slot in request.returned])
    refills = db.execute(_REFILLS, (MINUTE, now, account, now, REFILL_STEP)).fetchall()
    closed = [at for [at] in db.execute(_CLOSED_UNTIL, (account, now))]
    grants: list[tuple[int, int]] = []
    denials: list[tuple[str, int]] = []
    for route, limit, numbers in request.wants:
        for number in numbers:
            minute_at = free_at(None, request.limit, MINUTE)
            at = max([*closed, minute_at, free_at(route, limit, SECOND)])
            if unknown or at > now + AHEAD:
                denials.append((route, at - now))
                break
            ended_at = at + VALID + request.longest
            db.execute(_WRITE, (account, client, number, route, ended_at, now))
            grants.append((number, at - now))
    used, clients = db.execute(_COUNT, (account,)).fetchone()
    return Reply(used, clients, unknown, grants, denials, refills)
