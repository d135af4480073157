"""VIPs that a group lists: kept by who has them, then given out in the order listed."""

from tenure.integrations.bosh.placement import place
from tests.integrations.bosh.placement.builders import config, group, manual, on, present, static, subnet, vip

SITE = config(
    manual("lab", subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14", azs=["z1", "z2"])), vip("public"), vip("more")
)
ONE, TWO, THREE = "203.0.113.11", "203.0.113.12", "203.0.113.13"
BOTH = ["z1", "z2"]


def test_vips_are_given_by_az_and_index_in_the_order_listed() -> None:
    placement = place(group(3, on("lab"), on("public", ONE, TWO, THREE), azs=BOTH), SITE, [])

    assert [(each.az, each.index) for each in placement.placed] == [("z1", 0), ("z1", 2), ("z2", 1)]
    assert static(placement, "public") == {0: ONE, 2: TWO, 1: THREE}


def test_a_vip_that_is_still_listed_is_kept_and_others_take_the_rest() -> None:
    instances = [present(0, "z1", public=THREE), present(1, "z2", public="203.0.113.99")]

    placement = place(group(3, on("lab"), on("public", ONE, TWO, THREE), azs=BOTH), SITE, instances)

    assert static(placement, "public") == {0: THREE, 2: ONE, 1: TWO}


def test_a_listed_vip_stays_with_who_has_it_on_another_network() -> None:
    instances = [present(0, "z1", more=TWO), present(1, "z2")]

    placement = place(group(2, on("lab"), on("public", ONE, TWO), azs=BOTH), SITE, instances)

    assert static(placement, "public") == {0: TWO, 1: ONE}


def test_vips_come_beside_static_ips() -> None:
    wanted = group(1, on("lab", "172.20.5.10"), on("public", ONE), on("more", TWO), azs=["z1"])

    placement = place(wanted, SITE, [])

    assert [len(each.static) for each in placement.placed] == [3]
    assert (static(placement, "lab"), static(placement, "more")) == ({0: "172.20.5.10"}, {0: TWO})
