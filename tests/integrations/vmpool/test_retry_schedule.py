"""When a write is tried again (VD1)."""

import random

import pytest

from tenure.integrations.vmpool.retry_schedule import RetrySchedule


def test_case_20_vd1_go_makes_four_attempts_with_the_delays_of_client_go() -> None:
    schedule = RetrySchedule("go", chance=random.Random(7))
    for _ in range(200):
        delays = [schedule.delay_s(failed) for failed in (1, 2, 3, 4)]
        assert delays.pop() is None
        for delay, least in zip(delays, (0.01, 0.05, 0.25), strict=True):
            assert delay is not None
            assert least <= delay <= least * 1.1


def test_vd1_until_the_deadline_the_delay_is_anything_up_to_a_growing_limit() -> None:
    schedule = RetrySchedule("deadline", 0.1, longest_s=10.0, chance=random.Random(7))
    quick = [(1, 0, 0.1), (2, 0, 0.2), (4, 0, 0.8), (5, 0, 1.0), (50, 0, 1.0), (10_000, 0.001, 1.0)]
    slow = [(1, 0.5, 0.5), (3, 0.5, 2.0), (9, 0.05, 3.2), (50, 5.0, 10.0)]
    for failed, took_s, longest in [*quick, *slow]:
        delays = [schedule.delay_s(failed, took_s) or 0.0 for _ in range(500)]
        assert 0 <= min(delays) < longest * 0.1
        assert longest * 0.9 < max(delays) <= longest


@pytest.mark.parametrize("mode", ["deadline", "go"])
def test_vd1_max_retries_binds_in_either(mode: str) -> None:
    schedule = RetrySchedule(mode, max_retries=2)  # type: ignore[arg-type]

    assert [schedule.delay_s(failed) is None for failed in (1, 2, 3)] == [False, False, True]
    assert RetrySchedule(mode, max_retries=0).delay_s(1) is None  # type: ignore[arg-type]
