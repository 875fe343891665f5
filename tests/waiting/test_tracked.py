import msgspec
import pytest

from neonctl_async.waiting.timing.forecast import Observation
from neonctl_async.waiting.tracked import duration
from tests.support.records import operation


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [(None, 3.0), (3500, 3.5), (1000, 2.0), (9000, 4.0), (0, 2.0)]
)
def test_duration_of_a_record_is_limited_to_the_observed_range(
    milliseconds: int | None, seconds: float
) -> None:
    observation = Observation("project", "create_branch", started_at=100.0)
    observation.pending_at = 102.0
    record = msgspec.structs.replace(operation(status="finished"), total_duration_ms=milliseconds)
    assert duration(observation, record, now=104.0) == seconds
