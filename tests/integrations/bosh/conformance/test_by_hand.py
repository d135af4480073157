"""What people say of a cloud config's networks by hand, in the ledger itself, stays through every upload."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.kernel.plan.edits import ModifyNetwork, ModifyPool, ModifySubnet, Reserve
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

CAMERA = Reserve(
    network="lab", range="172.20.5.2-172.20.5.5", reason="cameras", labels={"rack": "7"}, description="until May",
    request="ticket-9",
)  # fmt: skip


async def reserved(town: Town, network: str = "lab") -> dict[str, str]:
    """Return the reserved ranges of a network, with their reasons."""
    found = (await town.ledger.network(network)).subnets
    return {str(each.range): each.reason for subnet in found for each in subnet.reserved}


async def test_what_was_reserved_by_hand_stays_so_with_all_that_is_said_of_it(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply([CAMERA])
    await town.upload(config(lab(dns=["192.0.2.53"], reserved=["172.20.5.12-172.20.5.14"])))

    [subnet] = (await town.ledger.network("lab")).subnets
    kept = next(each for each in subnet.reserved if each.reason == "cameras")
    assert (str(kept.range), kept.request) == ("172.20.5.2-172.20.5.5", "ticket-9")
    assert (kept.notes.labels, kept.notes.description) == ({"rack": "7"}, "until May")
    await town.run(manifest("alpha", app()))
    assert await town.tails("alpha") == {"app/0": ".6"}


async def test_an_upload_that_changes_nothing_leaves_it_alone(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply([CAMERA])
    before = await town.ledger.network("lab")
    uploaded = await town.upload(config())

    assert (uploaded.warnings, uploaded.changed) == ([], [])
    assert await town.ledger.network("lab") == before


async def test_where_a_cloud_config_reserves_the_same_and_ends_it_people_still_do(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply([CAMERA])
    both = config(lab(reserved=["172.20.5.4-172.20.5.9"]))
    await town.upload(both)
    assert (await town.upload(both)).changed == []

    await town.upload(config())

    assert (await reserved(town))["172.20.5.2-172.20.5.5"] == "cameras"
    await town.run(manifest("alpha", app()))
    assert await town.tails("alpha") == {"app/0": ".6"}


async def test_it_goes_with_a_network_that_is_renamed_and_with_a_range_that_grows(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply([CAMERA])
    await town.upload(config(name="hub"))
    assert (await reserved(town, "hub"))["172.20.5.2-172.20.5.5"] == "cameras"

    await town.upload(config(lab(range="172.20.4.0/23"), name="hub"))

    assert (await reserved(town, "hub"))["172.20.5.2-172.20.5.5"] == "cameras"


async def test_what_has_no_place_any_more_is_told(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply([CAMERA])
    moved = config(lab(range="172.20.5.4/30", gateway="172.20.5.6"))
    uploaded = await town.upload(moved)
    told = "was reserved by hand, and is in no subnet any more: nobody keeps it back"
    assert [each.message for each in uploaded.warnings] == [f"Range '172.20.5.2-172.20.5.3' of network 'lab' {told}"]
    assert (await reserved(town))["172.20.5.4-172.20.5.5"] == "cameras"

    gone = await town.upload(config(name="hub", more=[]).replace("172.20.5", "172.20.9"))

    assert [each.message for each in gone.warnings] == [f"Range '172.20.5.4-172.20.5.5' of network 'lab' {told}"]


async def test_a_static_ip_that_was_reserved_by_hand_is_refused_after_an_upload_too(town: Town) -> None:
    await town.upload(config(lab(static=["172.20.5.2"])))
    await town.ledger.apply([CAMERA])
    await town.upload(config(lab(static=["172.20.5.2-172.20.5.3"])))
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("alpha", app(static_ips=["172.20.5.2"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_IP_RESERVED


async def test_names_notes_and_how_pools_pick_stay(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply(
        [
            ModifyNetwork(network="lab", labels={"door": "deployments", "team": "net"}, description="the lab"),
            ModifySubnet(network="lab", subnet="172.20.5.0/28", name="floor-1", labels={"vlan": "7"}),
            ModifyPool(network="lab", pool="172.20.5.2-172.20.5.14", cooling_s=60, description="slow ARP"),
        ]
    )
    await town.upload(config(lab(static=["172.20.5.9"])))

    network = await town.ledger.network("lab")
    [subnet] = network.subnets
    assert (network.notes.labels["team"], network.notes.description) == ("net", "the lab")
    assert (subnet.name, subnet.notes.labels) == ("floor-1", {"vlan": "7"})
    assert [(str(pool.range), pool.cooling_s, pool.notes.description) for pool in subnet.pools] == [
        ("172.20.5.2-172.20.5.8", 60, "slow ARP"),
        ("172.20.5.10-172.20.5.14", 60, "slow ARP"),
    ]


async def test_a_pool_that_was_closed_by_hand_stays_closed(town: Town) -> None:
    await town.upload(config())
    await town.ledger.apply([ModifyPool(network="lab", pool="172.20.5.2-172.20.5.14", retired=True)])
    await town.upload(config(lab(static=["172.20.5.9"])))

    [subnet] = (await town.ledger.network("lab")).subnets
    assert [pool.retired for pool in subnet.pools] == [True, True]


async def test_it_stays_beside_what_is_kept_for_a_deployment_without_a_cloud_config(town: Town) -> None:
    alpha = Fleet(town, "alpha")
    await alpha.run(own("alpha", app()))
    await town.upload(config())
    await town.ledger.apply([CAMERA])  # of what is kept for alpha already, its word stays
    wider = {"range": "172.20.4.0/23", "gateway": "172.20.5.1"}
    await town.upload(config(wider))
    await town.ledger.apply([Reserve(network="lab", range="172.20.4.8", reason="printer")])
    await town.upload(config({**wider, "static": ["172.20.4.9"]}))
    assert (await reserved(town))["172.20.4.8"] == "printer"

    await alpha.run(manifest("alpha", app()))

    assert (await reserved(town))["172.20.4.8"] == "printer"
    assert not [reason for reason in (await reserved(town)).values() if "has no cloud config" in reason]
