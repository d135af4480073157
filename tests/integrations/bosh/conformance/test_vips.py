"""D12, G6, G8, F8: VIPs in a space that others use as well, and VIP networks that get another name."""

import pytest

import tenure
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.retry import TRIES
from tenure.integrations.bosh.verbs import errands
from tests.integrations.bosh.conformance.test_moments import between
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest

POOL = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20-198.51.100.50"]}]}
OVER = {
    "name": "over",
    "subnets": [lab(range="198.51.100.0/24", gateway="198.51.100.1", static=["198.51.100.20-198.51.100.60"])],
}
ON_BOTH: list[Document] = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub"}]


def on(network: str, *vips: str) -> list[Document]:
    """Write the networks of a group that lists its VIPs."""
    return [{"name": "lab", "default": ["dns", "gateway"]}, {"name": network, "static_ips": list(vips)}]


async def crowded(town: Town, count: int) -> None:
    """Let another deployment have the first so many of the pool, in another network."""
    await town.upload(config(more=[POOL, OVER]))
    statics = [f"198.51.100.20-198.51.100.{20 + count - 1}"]
    await town.run(manifest("alpha", app(count, network="over", static_ips=statics)))


async def test_g8_however_many_vips_are_held_in_another_network_the_next_one_is_chosen(town: Town) -> None:
    await crowded(town, 13)
    await town.run(manifest("beta", app(2, networks=ON_BOTH)))

    assert [held["pub"] for held in (await town.has("beta")).values()] == ["198.51.100.33", "198.51.100.34"]


async def test_g8_however_many_vips_are_kept_back_the_next_one_is_chosen(town: Town) -> None:
    await town.upload(config(more=[POOL]))
    for last in range(20, 48, 2):
        await town.ledger.reserve("pub", f"198.51.100.{last}-198.51.100.{last + 1}", reason=f"for {last}")
    await town.run(manifest("beta", app(networks=ON_BOTH)))

    assert (await town.has("beta"))["app/0"]["pub"] == "198.51.100.48"


async def test_g8_without_a_free_vip_in_the_space_the_refusal_is_bosh_s(town: Town) -> None:
    await crowded(town, 31)
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(networks=ON_BOTH)))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert "for vip network 'pub': no more available" in str(caught.value)


async def test_g8_two_pools_over_each_other_give_an_instance_two_vips(town: Town) -> None:
    await town.upload(config(more=[POOL, {**POOL, "name": "twin"}]))
    await town.run(manifest("beta", app(networks=[*ON_BOTH, {"name": "twin"}])))

    held = (await town.has("beta"))["app/0"]
    assert (held["pub"], held["twin"]) == ("198.51.100.20", "198.51.100.21")


async def test_g8_whoever_is_always_overtaken_is_told_who_was_faster(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.upload(config(more=[POOL, OVER]))
    apply = town.ledger.apply
    async with await tenure.open_async(place) as other:
        rival, numbers = Town(other), iter(range(20, 60))

        async def late(*words: object, **more: object) -> object:
            address = f"198.51.100.{next(numbers)}"
            await rival.deploy(manifest(f"d{address[11:]}", app(network="over", static_ips=[address])))
            return await apply(*words, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(town.ledger, "apply", late)
        with pytest.raises(Refused) as caught:
            await town.deploy(manifest("beta", app(networks=ON_BOTH)))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert f"from deployment 'd{19 + TRIES}'" in str(caught.value)


SMOKE = manifest("beta", app(), app(name="smoke", lifecycle="errand", networks=ON_BOTH))


async def test_f8_an_errand_passes_over_vips_that_are_held_in_another_network(town: Town) -> None:
    await crowded(town, 14)
    await town.run(SMOKE)
    ran = await errands.run(town.ledger, "beta", "smoke")

    assert sorted(each.address for each in ran.granted.values() if each.network == "pub") == ["198.51.100.34"]


async def test_f8_an_errand_that_finds_its_vip_taken_in_that_moment_gets_the_next(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.upload(config(more=[POOL, OVER]))
    await town.run(SMOKE)
    text = manifest("alpha", app(network="over", static_ips=["198.51.100.20"]))
    async with await tenure.open_async(place) as other:
        between(town, monkeypatch, lambda: Town(other).deploy(text))
        await errands.run(town.ledger, "beta", "smoke")

    assert (await town.has("beta"))["smoke/0"]["pub"] == "198.51.100.21"


@pytest.mark.parametrize("kind", ["named", "pool"])
async def test_d12_a_renamed_vip_network_keeps_its_addresses(town: Town, kind: str) -> None:
    pools = {"named": {}, "pool": {"subnets": [{"static": ["198.51.100.7-198.51.100.8"]}]}}[kind]
    vips = ["198.51.100.7", "198.51.100.8"]

    def networks(name: str) -> list[Document]:
        return on(name, *vips) if kind == "named" else [ON_BOTH[0], {"name": name}]

    await town.upload(config(more=[{"name": "pub", "type": "vip", **pools}]))
    await town.run(manifest("alpha", app(2, networks=networks("pub"))))
    await town.upload(config(more=[{"name": "front", "type": "vip", **pools}]))
    second = await town.run(manifest("alpha", app(2, networks=networks("front"))))
    third = await town.run(manifest("alpha", app(2, networks=networks("front"))))

    assert [held["front"] for held in (await town.has("alpha")).values()] == vips
    assert second.granted == {}
    assert not third.changes
    assert await town.ledger.holdings("pub") == []


async def test_d12_in_a_renamed_vip_network_each_keeps_his_own_whatever_the_order_listed(town: Town) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip"}]))
    await town.run(manifest("alpha", app(2, networks=on("pub", "198.51.100.7", "198.51.100.8"))))
    await town.upload(config(more=[{"name": "front", "type": "vip"}]))
    await town.run(manifest("alpha", app(2, networks=on("front", "198.51.100.8", "198.51.100.7"))))

    assert [held["front"] for held in (await town.has("alpha")).values()] == ["198.51.100.7", "198.51.100.8"]


async def test_g6_a_named_vip_of_another_instance_is_still_refused(town: Town) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip"}, {"name": "front", "type": "vip"}]))
    await town.run(manifest("alpha", app(networks=on("pub", "198.51.100.7"))))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(networks=on("front", "198.51.100.7"))))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_d12_two_vips_of_an_instance_may_change_places(town: Town) -> None:
    def networks(pub: str, front: str) -> list[Document]:
        return [*on("pub", pub), {"name": "front", "static_ips": [front]}]

    await town.upload(config(more=[{"name": "pub", "type": "vip"}, {"name": "front", "type": "vip"}]))
    await town.run(manifest("alpha", app(networks=networks("198.51.100.7", "198.51.100.8"))))
    await town.run(manifest("alpha", app(networks=networks("198.51.100.8", "198.51.100.7"))))

    held = (await town.has("alpha"))["app/0"]
    assert (held["pub"], held["front"]) == ("198.51.100.8", "198.51.100.7")


async def test_a8_of_two_groups_that_ask_for_one_vip_the_second_is_refused(town: Town) -> None:
    await town.upload(config(more=[{"name": "public", "type": "vip"}]))
    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "public", "static_ips": ["203.0.113.9"]}]
    with pytest.raises(Refused, match=r"for instance 'two/.*already reserved by instance 'one/.* from deployment"):
        await town.deploy(manifest("alpha", app(name="one", networks=on), app(name="two", networks=on)))
