"""The seeds of the search: documented responses of Neon, and inputs of each target."""

from collections.abc import Iterator

import msgspec

from neonctl_async.types import Project
from tests.models.records import MINIMAL
from tests.models.test_samples import DATA, SAMPLES
from tools.fuzz.draw import DEPTHS, KEY
from tools.fuzz.findings import COVERAGE, MISTAKES, VIOLATIONS
from tools.fuzz.responses import HEADERS, KINDS, STATUSES

TEXTS = (
    *(b"h\0\0\0\xff" + text for text in (b"", b"key=\xff now", b"://ada:\xff@h/db")),
    *(b"h\1\4\1" + text for text in (b"x", b"a_", b'"key":"\\')),
    *(b"h\1\0\2" + text for text in (b"://:", b'"_', b"bearer ", b"napi_", b"\\", b"neon_")),
    *(b"g%c\1%c\3\0some text" % (limit, damage) for limit in range(4) for damage in range(5)),
    b"pget\xff/projects/p-1/a%20b",
    b"q\0\1cursor\xff\0abc\xff",
    b"q\1\0p-1\xff\2a\xff\3\2b\xffc\xffd\xff\4\1\0",
    b"r7\xff",
    b"rWed, 21 Oct 2026 07:28:30 GMT\xffWed, 21 Oct 2026 07:28:00 GMT",
    b"vrunning\xffpaused",
)
ERROR = b'{"code":"BRANCH_MISSING","message":"no branch of %b","request_id":"req-9"}' % KEY


def seeds() -> Iterator[bytes]:
    """Yield the seeds; none of them violates a property."""
    yield from (*TEXTS, *VIOLATIONS.values(), *MISTAKES.values(), *COVERAGE)
    for index in range(len(KINDS)):
        yield bytes((ord("a"), index))
        yield _response(index, 200, b'"%b"' % KEY)
    for status in STATUSES:
        yield _response(0, status, ERROR)
    for depth in DEPTHS:
        yield _response(
            KINDS.index(Project), 200, b'{"id":null,"x":%b}' % (b"[" * depth + b"]" * depth)
        )
        yield _response(0, 500, b'{"code":%b}' % (b"[" * depth + b"]" * depth))
    for kind, record in MINIMAL.items():
        yield _response(KINDS.index(kind), 200, msgspec.json.encode(record))
    for name, kind in SAMPLES.items():
        yield _response(KINDS.index(kind), 200, (DATA / name).read_bytes())


def _response(kind: int, status: int, body: bytes) -> bytes:
    return (
        bytes((ord("a"), kind, STATUSES.index(status), 0)) + b"\xff" * len(HEADERS) + b"\1" + body
    )
