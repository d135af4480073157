"""Whole examples rendered on a real API server: the published one, one with every field, and the design's own."""

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM
from tenure.integrations.kubernetes.runtime.resource_types import key_of
from tests.integrations.kubernetes.metal3.serving import until
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark
from tests.integrations.kubernetes.metal3_data.whole_template import (
    add_machine,
    add_pools,
    whole_meta_data,
    whole_network_data,
    whole_spec,
)
from tests.integrations.kubernetes.metal3_data.worked_example import (
    META_DATA,
    NETWORK_DATA,
    SEED_META_DATA,
    SEED_NETWORK_DATA,
    TEMPLATE,
    seed_template_today,
)


def test_the_worked_example_is_rendered_as_published(park: MachinePark) -> None:
    """R1 to R9 of one machine, which is the fourth of its template: three have numbers, and no hosts yet."""
    park.add_pools()
    park.template_of(TEMPLATE)
    for number in range(3):
        park.machine(f"waits-{number}", None, "blue-md-0")
        until(lambda number=number: park.data_of(f"waits-{number}"))  # type: ignore[misc]
    park.machine("blue-md-0-x7k2p", "rack3-u12", "blue-md-0")
    meta_data, network_data = park.rendered("blue-md-0-x7k2p")

    assert meta_data == {
        **META_DATA,
        "dns4": "10.40.0.53,10.41.0.53",
        "providerid": f"{park.name}/rack3-u12/blue-md-0-x7k2p",
    }
    assert network_data == NETWORK_DATA
    assert key_of(park.data_of("blue-md-0-x7k2p"))[1] == "blue-md-0-3"
    assert {key_of(each)[1] for each in park.all(IP_CLAIM)} == {"blue-md-0-3-bm-v4", "blue-md-0-3-bm-v6"}
    assert {key_of(each)[1] for each in park.all(IP_ADDRESS)} == {"dc7-bm4-10-40-8-20", "dc7-bm6-fd20-7-8--100"}


def test_r1_to_r10_of_a_template_with_every_field(park: MachinePark) -> None:
    """CAPM3's manager renders the same, value by value (``capm3/test_capm3_secrets.py``)."""
    add_pools(park)
    park.template("whole", **whole_spec(park.version))
    found = [park.rendered(add_machine(park, number)) for number in range(2)]

    assert [meta_data for meta_data, _ in found] == [whole_meta_data(park.name, number) for number in range(2)]
    assert [network_data for _, network_data in found] == [whole_network_data(number) for number in range(2)]


def test_ks9_the_design_s_template_in_today_s_spelling(park: MachinePark) -> None:
    """An API server drops the spellings of 2020; ``tenure render metal3`` reads them, and comes to the same."""
    for number, pool in enumerate(("pool-1", "pool-2")):
        fixed = {f"nodepool-1-0-{pool}": f"192.168.{number}.11"}
        park.pool(
            pool, f"192.168.{number}.10-192.168.{number}.15", prefix=24, gateway=f"192.168.{number}.1",
            preAllocations=fixed,
        )  # fmt: skip
    park.template_of(seed_template_today())
    park.machine("machine-1", "host-1", "nodepool-1")
    meta_data, network_data = park.rendered("machine-1")

    assert meta_data == {**SEED_META_DATA, "providerid": f"{park.name}/host-1/machine-1"}
    assert network_data == SEED_NETWORK_DATA
