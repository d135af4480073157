"""Settings of a pool: by arguments, by the environment, and what is refused at birth."""

from typing import Any

import pytest

from tenure.integrations.vmpool.pool_errors import PoolTooLarge
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, VMPoolSettings
from tenure.kernel.errors import Invalid

IPS = ("10.0.0.1", "10.0.0.2")


def test_case_82_the_profile_of_upstream() -> None:
    settings = VMPoolSettings.upstream(IPS)

    assert (settings.namespace, settings.config_map_name) == ("confidential-containers-system", "byom-ip-pool-state")
    assert (settings.max_retries, settings.retry_interval_s, settings.operation_timeout_s) == (5, 0.1, 30.0)


def test_vd1_by_default_a_write_is_tried_until_the_time_is_up() -> None:
    settings = VMPoolSettings(pool_ips=IPS)

    assert (settings.retry, settings.max_retries, settings.operation_timeout_s) == ("deadline", None, 30.0)


def test_case_33_addresses_are_kept_in_one_spelling() -> None:
    assert VMPoolSettings(pool_ips=["2001:DB8::1", "10.0.0.1"]).line.ips == ("2001:db8::1", "10.0.0.1")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pool_ips", []), ("pool_ips", ["x"]), ("pool_ips", "10.0.0.1"), ("pool_ips", None),
        ("namespace", ""), ("namespace", "A"), ("namespace", "a.b"), ("namespace", "x" * 64), ("namespace", None),
        ("config_map_name", ""), ("config_map_name", "a/b"), ("config_map_name", "x" * 254), ("config_map_name", 5),
        ("operation_timeout_s", 0), ("operation_timeout_s", -1), ("operation_timeout_s", float("nan")),
        ("operation_timeout_s", float("inf")), ("operation_timeout_s", True), ("operation_timeout_s", "soon"),
        ("retry_interval_s", 0), ("retry_interval_s", "5h"), ("retry_interval_s", None),
        ("max_retries", -1), ("max_retries", 1.5), ("max_retries", True), ("max_retries", "5"),
        ("retry", "never"), ("outside_pool", "maybe"), ("history", -1), ("node_name", "a b"), ("node_name", 5),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_and_named(field: str, value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        VMPoolSettings(**{"pool_ips": IPS, field: value})

    assert caught.value.field == field


def test_vs4_every_field_has_an_argument_a_flag_and_a_variable() -> None:
    environment = {
        "VM_POOL_IPS": "10.0.0.1-10.0.0.9,10.0.0.20", "MAX_RANGE_IPS": "3", "POOL_NAMESPACE": "pods",
        "POOL_CONFIGMAP_NAME": "state", "POOL_OPERATION_TIMEOUT": "45s", "POOL_MAX_RETRIES": "7",
        "POOL_RETRY_INTERVAL": "100ms", "POOL_RETRY": "go", "NODE_NAME": " n1 ", "POOL_OUTSIDE": "drop",
        "VM_POOL_MODE": "shards", "VM_POOL_SHARDS": "5", "VM_POOL_LEDGER": "memory:", "VM_POOL_PICK": "rendezvous",
    }  # fmt: skip
    settings = VMPoolSettings.from_environment(environment)

    assert settings.line.ips == ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.20")
    found = (settings.namespace, settings.config_map_name, settings.operation_timeout_s, settings.max_retries)
    assert found == ("pods", "state", 45.0, 7)
    found_ours = (settings.retry_interval_s, settings.retry, settings.node_name, settings.outside_pool)
    assert found_ours == (0.1, "go", "n1", "drop")
    found_modes = (settings.pool_mode, settings.pool_shards, settings.pool_ledger, settings.pool_pick)
    assert found_modes == ("shards", 5, "memory:", "rendezvous")
    assert {source.variable for source in SOURCES} == set(environment)
    assert len({source.flag for source in SOURCES}) == len(SOURCES)


def test_case_76_a_range_by_the_environment_is_expanded_with_its_limit() -> None:
    environment = {"VM_POOL_IPS": "10.0.0.1-10.0.0.200"}

    assert len(VMPoolSettings.from_environment(environment).line.ips) == 100
    assert len(VMPoolSettings.from_environment({**environment, "MAX_RANGE_IPS": "200"}).line.ips) == 200


def test_vs4_an_argument_counts_before_the_environment() -> None:
    environment = {"VM_POOL_IPS": "10.0.0.1", "POOL_NAMESPACE": "theirs", "POOL_MAX_RETRIES": "7"}
    settings = VMPoolSettings.from_environment(
        environment, pool_ips="10.0.0.5-10.0.0.6", namespace="ours", max_retries=None, max_range_ips=5
    )

    assert (settings.line.ips, settings.namespace, settings.max_retries) == (("10.0.0.5", "10.0.0.6"), "ours", 7)
    assert VMPoolSettings.from_environment(environment, pool_ips=["10.0.0.9"]).line.ips == ("10.0.0.9",)


@pytest.mark.parametrize(
    ("environment", "given", "field"),
    [
        ({}, {}, "pool_ips"),
        ({"VM_POOL_IPS": " , "}, {}, "pool_ips"),
        ({"VM_POOL_IPS": "10.0.0.1,x"}, {}, "pool_ips"),
        ({"VM_POOL_IPS": "10.0.0.1", "MAX_RANGE_IPS": "0"}, {}, "max_range_ips"),
        ({"VM_POOL_IPS": "10.0.0.1", "MAX_RANGE_IPS": "many"}, {}, "max_range_ips"),
        ({"VM_POOL_IPS": "10.0.0.1", "POOL_MAX_RETRIES": "-1"}, {}, "max_retries"),
        ({"VM_POOL_IPS": "10.0.0.1", "POOL_OPERATION_TIMEOUT": "soon"}, {}, "operation_timeout_s"),
        ({"VM_POOL_IPS": "10.0.0.1"}, {"colour": "blue"}, "colour"),
    ],
)
def test_a_wrong_environment_is_refused_and_the_setting_is_named(
    environment: dict[str, str], given: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        VMPoolSettings.from_environment(environment, **given)

    assert caught.value.field == field


@pytest.mark.parametrize("most", ["0", "many", "70000"])
def test_a_limit_of_ranges_is_refused_with_the_numbers_that_it_may_be(most: str) -> None:
    with pytest.raises(Invalid, match="a whole number from 1 to 65536 is needed"):
        VMPoolSettings.from_environment({"VM_POOL_IPS": "10.0.0.1", "MAX_RANGE_IPS": most})


def test_what_was_left_out_of_the_list_is_a_warning() -> None:
    settings = VMPoolSettings.from_environment({"VM_POOL_IPS": "10.0.0.1-10.0.1.1,10.0.0.1"})

    assert len(settings.warnings) == 2


def test_vs5_a_pool_of_more_than_a_thousand_is_a_warning_that_names_the_other_modes() -> None:
    ips = [f"10.0.{number >> 8}.{number & 255}" for number in range(1001)]

    assert VMPoolSettings(pool_ips=ips[:1000]).warnings == ()
    [warning] = VMPoolSettings(pool_ips=ips).warnings
    assert "1001 addresses" in warning
    assert "several pools" in warning
    assert "mode per-ip, shards or ledger (VM_POOL_MODE)" in warning
    assert "ledger" in warning


def test_case_78_a_pool_that_cannot_be_allocated_whole_is_a_warning_and_one_that_never_fits_is_refused() -> None:
    def ips(count: int) -> list[str]:
        return [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(count)]

    assert any("about 2" in warning and "of 4000" in warning for warning in VMPoolSettings(pool_ips=ips(4000)).warnings)
    with pytest.raises(PoolTooLarge, match="pool state too large"):
        VMPoolSettings(pool_ips=ips(60_000))
