from neonctl_async.types import BranchMetrics, ConsumptionMetric, ProjectConsumption
from tests.models.records import (
    AT_NOON,
    BRANCH_METRICS,
    METRIC,
    NOON,
    PERIOD,
    PROJECT_CONSUMPTION,
    decode,
)


def test_metrics_decode_per_period_and_timeframe() -> None:
    timeframe = {"timeframe_start": NOON, "timeframe_end": NOON, "metrics": [METRIC]}
    periods = [{**PERIOD, "consumption": [timeframe]}]
    [period] = decode(BranchMetrics, {**BRANCH_METRICS, "periods": periods}).periods
    assert period.consumption[0].timeframe_start == AT_NOON
    assert period.consumption[0].metrics == [
        ConsumptionMetric(metric_name="compute_unit_seconds", value=3600)
    ]


def test_end_of_the_current_period_is_none() -> None:
    [period] = decode(ProjectConsumption, {**PROJECT_CONSUMPTION, "periods": [PERIOD]}).periods
    assert (period.period_start, period.period_end) == (AT_NOON, None)


def test_metric_that_was_not_requested_is_none() -> None:
    timeframe = {"timeframe_start": NOON, "timeframe_end": NOON, "written_data_bytes": 0}
    periods = [{**PERIOD, "consumption": [timeframe]}]
    [period] = decode(ProjectConsumption, {**PROJECT_CONSUMPTION, "periods": periods}).periods
    [used] = period.consumption
    assert (used.written_data_bytes, used.logical_size_bytes) == (0, None)
