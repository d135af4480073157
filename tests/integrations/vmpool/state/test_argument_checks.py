"""Numbers that are no durations, and words that are no choice, are refused with the name of the argument."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.sftp_reboot import SftpAccess
from tenure.integrations.vmpool.machines.vm_cleanup import command_cleanup, http_cleanup
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.machines.vm_return import AwaitReturn, FixedWait
from tenure.integrations.vmpool.node_recovery import NodeRecovery
from tenure.integrations.vmpool.pool_agent import AgentSettings
from tenure.integrations.vmpool.state.argument_checks import check_seconds, read_seconds
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, VMPoolSettings
from tenure.kernel.errors import Invalid

CLEANUP = command_cleanup(["true"])
NO_DURATIONS = (math.nan, math.inf, -math.inf, -1, -0.001, 86_401, True, None, "soon")

DURATIONS: dict[str, Callable[[Any], object]] = {
    "operation_timeout_s": lambda given: VMPoolSettings(pool_ips=["192.0.2.1"], operation_timeout_s=given),
    "retry_interval_s": lambda given: VMPoolSettings(pool_ips=["192.0.2.1"], retry_interval_s=given),
    "timeout_s": lambda given: CleanupPlan(CLEANUP, timeout_s=given),
    "seconds": FixedWait,
    "within_s": lambda given: AwaitReturn(within_s=given),
    "every_s": lambda given: AgentSettings(every_s=given),
    "retry_s": lambda given: AgentSettings(retry_s=given),
    "timeout_s of a probe": lambda given: ReadinessProbe(timeout_s=given),
    "timeout_s of sftp": lambda given: SftpAccess(timeout_s=given),
    "SSH_TIMEOUT": lambda given: SftpAccess.from_environment({"SSH_TIMEOUT": str(given)}),
    "operation_timeout_s of the environment": lambda given: VMPoolSettings.from_environment(
        {"VM_POOL_IPS": "192.0.2.1", "POOL_OPERATION_TIMEOUT": str(given)}
    ),
    "retry_interval_s of the environment": lambda given: VMPoolSettings.from_environment(
        {"VM_POOL_IPS": "192.0.2.1", "POOL_RETRY_INTERVAL": str(given)}
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("given", NO_DURATIONS, ids=repr)
@pytest.mark.parametrize("name", DURATIONS)
def test_a_duration_that_is_none_is_refused_with_its_name(name: str, given: object) -> None:
    with pytest.raises(ValueError, match=f"^{name.split()[0]}: ") as caught:
        DURATIONS[name](given)

    assert isinstance(caught.value, Invalid)
    assert caught.value.field == name.split()[0]


@pytest.mark.parametrize("name", [name for name in DURATIONS if name not in ("seconds", "retry_s")])
def test_a_time_out_of_0_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        DURATIONS[name](0)


def test_a_wait_may_be_0_and_a_day_is_the_most() -> None:
    assert FixedWait(0).seconds == 0
    assert check_seconds(86_400, "wait_s") == 86_400.0
    assert (read_seconds("1.5s", "x"), read_seconds("100ms", "x"), read_seconds(" 2m ", "x")) == (1.5, 0.1, 120.0)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("mode", lambda given: NodeRecovery(None, "n", mode=given)),  # type: ignore[arg-type]  # no pool is asked
        ("mode", lambda given: AgentSettings(mode=given)),
        ("method", lambda given: http_cleanup("http://{ip}/", method=given)),
        *(
            (name, lambda given, name=name: VMPoolSettings(pool_ips=["192.0.2.1"], **{name: given}))
            for name in ("retry", "outside_pool", "pool_mode", "pool_pick")
        ),
    ],
)
@pytest.mark.parametrize("given", ["foo", "", 3, ["keep"]], ids=repr)
def test_a_word_that_is_no_choice_is_refused_with_its_name_and_the_choices(
    name: str, make: Callable[[Any], object], given: object
) -> None:
    with pytest.raises(ValueError, match=f"^{name}: '.*' or '.*' is needed, not ") as caught:
        make(given)

    assert isinstance(caught.value, Invalid)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("port", lambda: ReadinessProbe(port=0)),
        ("port", lambda: AwaitReturn(port=65_536)),
        ("port", lambda: SftpAccess(port=-1)),
        ("port", lambda: AgentSettings(port=70_000)),
        ("at_once", lambda: CleanupPlan(CLEANUP, at_once=0)),
        ("cleanup", lambda: CleanupPlan("reboot")),  # type: ignore[arg-type]  # that is the test
        ("returns", lambda: CleanupPlan(CLEANUP, 5.0)),  # type: ignore[arg-type]  # that is the test
        ("cleanup", lambda: NodeRecovery(None, "n", CLEANUP)),  # type: ignore[arg-type]  # that is the test
        ("url", lambda: http_cleanup("reboot/{ip}")),
        ("words", lambda: command_cleanup("reboot {ip}")),
    ],
)
def test_other_arguments_are_checked_when_they_are_given(name: str, make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        make()


def test_every_number_of_the_settings_is_checked() -> None:
    numbers = [
        source.argument for source in SOURCES if source.argument in ("max_retries", "pool_shards", "max_range_ips")
    ]
    for name in numbers:
        for given in ("nan", "inf", "-1", "1e3"):
            with pytest.raises(Invalid, match=f"^{name}: "):
                VMPoolSettings.from_environment({}, pool_ips="192.0.2.1", **{name: given})
