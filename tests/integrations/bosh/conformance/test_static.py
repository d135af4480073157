"""C: static IPs."""

import pytest

from tenure.integrations.bosh.cloud_config.moved_instances import was_asked_for
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

POOL = config(lab(static=["172.20.5.10-172.20.5.12"]))


def static(*tails: int, instances: int | None = None, deployment: str = "alpha") -> str:
    """Write a manifest with one group on these addresses."""
    addresses = [f"172.20.5.{tail}" for tail in tails]
    return manifest(deployment, app(len(tails) if instances is None else instances, static_ips=addresses))


async def test_c1_static_ips_are_given_in_the_order_of_the_list(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(10, 11))

    assert await town.tails("alpha") == {"app/0": ".10", "app/1": ".11"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (static(10, 11, instances=3), BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH),
        (static(10, 10), BoshErrorKind.JOB_INVALID_STATIC_IPS),
        (static(9), BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH),
    ],
    ids=["c2", "c3", "c4"],
)
async def test_c2_c3_c4_wrong_lists_are_refused_before_anything_is_reserved(
    town: Town, text: str, kind: BoshErrorKind
) -> None:
    await town.upload(POOL)
    with pytest.raises(Rejected) as caught:
        await town.run(text)

    assert kind in [fault.kind for fault in caught.value.faults]
    assert await town.ledger.holdings("lab") == []


async def test_c6_another_order_of_the_list_changes_nothing(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(10, 11))
    again = await town.run(static(11, 10))

    assert not again.changes
    assert await town.tails("alpha") == {"app/0": ".10", "app/1": ".11"}


async def test_c7_only_whose_static_ip_is_gone_moves(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(10, 11))
    before = await town.instances("alpha")
    moving = await town.deploy(static(10, 12))
    old = await town.parting("alpha")
    await town.finish(moving)
    after = await town.instances("alpha")

    assert old == {"app/1": {"lab": "172.20.5.11"}}
    assert await town.tails("alpha") == {"app/0": ".10", "app/1": ".12"}
    assert len(await town.ledger.holdings("lab")) == 2, ".11 is free"
    assert (after[0].vm == before[0].vm, after[1].vm == before[1].vm) == (True, False)


async def test_c8_two_groups_cannot_swap_in_one_deploy(town: Town) -> None:
    await town.upload(POOL)
    await town.run(
        manifest("alpha", app(name="a", static_ips=["172.20.5.10"]), app(name="b", static_ips=["172.20.5.11"]))
    )
    before = await town.instances("alpha")
    with pytest.raises(Refused) as caught:
        await town.run(
            manifest("alpha", app(name="a", static_ips=["172.20.5.11"]), app(name="b", static_ips=["172.20.5.10"]))
        )

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert await town.instances("alpha") == before


async def test_c10_what_a_removed_group_had_is_free_for_the_next_deploy(town: Town) -> None:
    await town.upload(POOL)
    await town.run(manifest("alpha", app(name="a", static_ips=["172.20.5.10"])))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("alpha", app(name="b", static_ips=["172.20.5.10"])))
    await town.run(manifest("alpha"))
    await town.run(manifest("alpha", app(name="b", static_ips=["172.20.5.10"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert await town.tails("alpha") == {"b/0": ".10"}


async def test_c11_an_automatic_ip_becomes_static_without_another_vm(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    [before] = await town.instances("alpha")
    await town.upload(config(lab(static=["172.20.5.2"])))
    made_static = await town.run(static(2))
    [after] = await town.instances("alpha")

    assert not made_static.changes
    assert await town.tails("alpha") == {"app/0": ".2"}
    assert after.vm == before.vm
    assert was_asked_for(made_static.config, after.holdings[0])


async def test_c13_without_static_ips_an_instance_leaves_the_static_pool(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(10))
    await town.run(manifest("alpha", app()))

    assert await town.tails("alpha") == {"app/0": ".2"}
    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.2"]
