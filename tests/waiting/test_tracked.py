import msgspec
import pytest

from neonctl_async.waiting.forecast import Observation
from neonctl_async.waiting.tracked import age, duration
from tests.support.records import operation


@pytest.mark.parametrize(
    ("told", "seconds"), [(None, 3.0), (3500, 3.5), (1000, 2.0), (9000, 4.0), (0, 2.0)]
)
def test_an_operation_took_what_it_tells_within_what_was_seen_of_it(
    told: int | None, seconds: float
) -> None:
    observation = Observation("create_branch", began=100.0)
    observation.pending_at = 102.0
    record = msgspec.structs.replace(operation(status="finished"), total_duration_ms=told)
    assert duration(observation, record, now=104.0) == seconds


@pytest.mark.parametrize(("told", "seconds"), [(None, 0.0), (0, 0.0), (1500, 1.5)])
def test_an_operation_is_as_old_as_its_record_tells(told: int | None, seconds: float) -> None:
    assert age(msgspec.structs.replace(operation(), total_duration_ms=told)) == seconds
