"""The worked example of the specification: where its instances stand, in the first deploy and in the second."""

from dataclasses import replace

from tenure.integrations.bosh.model.document_model import InstanceGroup
from tenure.integrations.bosh.placement import place
from tests.integrations.bosh.placement.builders import (
    config,
    gone,
    manual,
    on,
    settled,
    static,
    stays,
    subnet,
    vip,
    where,
)

SITE = config(
    manual(
        "apps",
        subnet("10.44.16.0/26", "10.44.16.10-10.44.16.13", azs=["z1"], vlan=416),
        subnet("10.44.17.0/26", "10.44.17.10-10.44.17.13", azs=["z2", "z3"], vlan=417),
    ),
    vip("public"),
    manual("pods6", subnet("2001:db8:44:100::/60", azs=["z1", "z2"], prefix=64)),
)
DB = InstanceGroup("db", 2, (on("apps", "10.44.16.10", "10.44.17.10"),), ("z1", "z2"))
WEB = InstanceGroup(
    "web", 3, (on("apps"), on("public", "203.0.113.11", "203.0.113.12", "203.0.113.13")), ("z1", "z2", "z3")
)
CELL = InstanceGroup("cell", 2, (on("apps", nic_group="1"), on("pods6", nic_group="1")), ("z1", "z2"))
VIPS = {0: "203.0.113.11", 1: "203.0.113.12", 2: "203.0.113.13"}


def test_the_first_deploy() -> None:
    db, web, cell = (place(each, SITE, []) for each in (DB, WEB, CELL))

    assert where(db) == where(cell) == [(0, "z1"), (1, "z2")]
    assert static(db, "apps") == {0: "10.44.16.10", 1: "10.44.17.10"}
    assert where(web) == [(0, "z1"), (1, "z2"), (2, "z3")]
    assert static(web, "public") == VIPS
    assert [dict(each.static) for each in cell.placed] == [{}, {}]


def test_the_second_deploy() -> None:
    db, web, cell = (settled(place(each, SITE, [])) for each in (DB, WEB, CELL))
    smaller = replace(DB, instances=1, networks=(on("apps", "10.44.16.10"),))

    placement = place(smaller, SITE, db)

    assert (stays(placement), static(placement, "apps"), gone(placement)) == ({0: "uuid-0"}, {0: "10.44.16.10"}, [1])
    assert stays(place(WEB, SITE, web)) == {0: "uuid-0", 1: "uuid-1", 2: "uuid-2"}
    assert static(place(WEB, SITE, web), "public") == VIPS
    assert stays(place(CELL, SITE, cell)) == {0: "uuid-0", 1: "uuid-1"}
