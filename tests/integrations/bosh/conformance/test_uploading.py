"""Uploads in the same moment, and uploads over what is held in other units: what is in force is what is laid out."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

import tenure
from tenure.integrations.bosh.cloud_config import managed_networks
from tenure.integrations.bosh.cloud_config.configs import remove_config
from tenure.integrations.bosh.cloud_config.site_survey import moved_by_upload
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.integrations.bosh.state.instance_state import CONFIG
from tenure.integrations.bosh.verbs import report_vm
from tenure.kernel.holdings.holding_model import Paper
from tenure.stores.postgres.transaction import PostgresTransaction
from tests.infrastructure.postgres import emptied_schema
from tests.integrations.bosh.conformance.recorder import Recorder, managed_config
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest

Happens = Callable[[], Awaitable[Any]]


def after_reading(town: Town, monkeypatch: pytest.MonkeyPatch, happens: Happens) -> None:
    """Let something happen once, when the papers are read and the networks not yet."""
    networks, left = town.ledger.networks, [happens]

    async def late(*words: Any, **more: Any) -> Any:
        while left:
            await left.pop()()
        return await networks(*words, **more)

    monkeypatch.setattr(town.ledger, "networks", late)


SECOND = config(lab(range="172.20.6.0/28", gateway="172.20.6.1"), name="n2")


async def test_a_network_that_another_upload_brings_in_that_moment_stays(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await tenure.open_async(place) as other:
        await town.upload(config())
        after_reading(town, monkeypatch, lambda: Town(other).upload(SECOND, "second"))
        await town.upload(config(lab(dns=["192.0.2.53"])))
        await town.run(manifest("alpha", app(network="n2")))

    assert await town.has("alpha") == {"app/0": {"n2": "172.20.6.2"}}


def both_at(monkeypatch: pytest.MonkeyPatch, verb: str) -> list[str]:
    """Let two transactions of PostgreSQL come to a verb before either goes on; return who came, in order."""
    met, came, do = asyncio.Barrier(2), list[str](), getattr(PostgresTransaction, verb)

    async def together(tx: PostgresTransaction, papers: Sequence[Paper]) -> Any:
        came.append(papers[0].kind)
        if len(came) <= 2:
            await met.wait()
        return await do(tx, papers)

    monkeypatch.setattr(PostgresTransaction, verb, together)
    return came


@pytest.mark.parametrize("name", ["default", "second"])
async def test_of_two_first_uploads_at_once_the_later_one_comes_after_the_earlier(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with emptied_schema() as url, await tenure.open_async(url) as one, await tenure.open_async(url) as two:
        came = both_at(monkeypatch, "add_papers")
        text = config(lab(range="172.20.6.0/28", gateway="172.20.6.1"), name="n2")
        await asyncio.gather(Town(one).upload(config()), Town(two).upload(text, name))

        assert len(came) >= 2
        assert len(await one.papers(CONFIG)) == len({"default", name})
        both = ["lab"], ["n2"]
        found = [network.name for network in await one.networks()]
        assert found == ["lab", "n2"] if name == "second" else found in both
        assert await one.verify() == []


async def test_two_configs_that_go_only_one_at_a_time_are_not_both_accepted(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = config(lab(range="172.20.6.0/28", gateway="172.20.6.1"), name="n2", compilation={"network": "n2"})
    async with await tenure.open_async(place) as other:
        await town.upload(config())
        after_reading(town, monkeypatch, lambda: Town(other).upload(another, "second"))
        with pytest.raises(Rejected, match="'compilation' key cannot be defined in multiple cloud configs"):
            await town.upload(config(compilation={"network": "lab"}))
        await town.run(manifest("alpha", app()))

    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_many_uploads_at_once_are_all_in_force(town: Town) -> None:
    texts = {
        f"n{number}": config(lab(range=f"10.8.{number}.0/28", gateway=f"10.8.{number}.1"), name=f"n{number}")
        for number in range(6)
    }
    await asyncio.gather(*(town.upload(text, name) for name, text in texts.items()))

    assert {each.name for each in await town.ledger.networks()} == set(texts)


OPEN = {"name": "s1", "netmask_bits": 28}
CHOSEN = {"range": "10.61.0.0/28", "gateway": "10.61.0.1"}


async def test_what_the_cloud_chose_in_that_moment_stays_through_an_upload(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = manifest("alpha", app(network="made"))
    async with await tenure.open_async(place) as other:
        await town.upload(managed_config(OPEN))
        prepare = managed_networks.prepare(other, Recorder(chosen=CHOSEN), "m.yml", text)
        after_reading(town, monkeypatch, lambda: prepare)
        await town.upload(managed_config({**OPEN, "dns": ["192.0.2.53"]}))
        await town.run(text)

    assert await town.has("alpha") == {"app/0": {"made": "10.61.0.2"}}


async def test_a_network_that_is_uploaded_while_the_cloud_makes_another_stays(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await tenure.open_async(place) as other:
        await town.upload(managed_config(OPEN))
        after_reading(town, monkeypatch, lambda: Town(other).upload(SECOND, "second"))
        await town.run(manifest("alpha", app(network="made")), cloud=Recorder(chosen=CHOSEN))
        await town.run(manifest("beta", app(network="n2")))

    assert await town.has("beta") == {"app/0": {"n2": "172.20.6.2"}}


WIDE: Document = {"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28}


async def blocks(town: Town) -> list[str]:
    """Return the subnets of ``lab``, those that are retired in brackets."""
    found = (await town.ledger.network("lab")).subnets
    return [f"({each.cidr})" if each.retired else str(each.cidr) for each in found]


@pytest.mark.parametrize(
    "subnet",
    [
        {"range": "10.10.0.24/29", "gateway": "10.10.0.25"},
        {"range": "10.10.0.16/29", "gateway": "10.10.0.17"},
        {"range": "10.10.0.0/24", "gateway": "10.10.0.1", "static": ["10.10.0.20"]},
    ],
    ids=["at-its-end", "at-its-begin", "static"],
)
async def test_what_a_config_names_must_not_lie_in_a_block_that_is_held(town: Town, subnet: Document) -> None:
    await town.upload(config(WIDE))
    await town.run(manifest("alpha", app(2)))
    with pytest.raises(Refused) as caught:
        await town.upload(config(subnet))

    assert str(caught.value) == (
        "Range '10.10.0.16/28' of network 'lab' is held in units that do not fit into a subnet, and its gateway or a "
        "static IP lies there: release it first"
    )
    assert await blocks(town) == ["10.10.0.0/24"]


async def test_a_subnet_gives_way_to_blocks_that_are_held_until_they_are_released(town: Town) -> None:
    plain = config({"range": "10.10.0.0/26", "gateway": "10.10.0.1"})
    await town.upload(config(WIDE))
    await town.run(manifest("alpha", app(4)))
    uploaded = await town.upload(plain)
    again = await town.upload(plain)
    around = await blocks(town)
    await town.run(manifest("beta", app(14)))
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("gamma", app()))
    for each in await report_vm.delete(town.ledger, "alpha"):
        await report_vm.lose(town.ledger, "alpha", each.name)
    await town.upload(plain)

    assert [fault.message for fault in uploaded.warnings] == [
        f"Range '10.10.0.{each}' of network 'lab' is held in units that do not fit into a subnet: "
        "it is given to nobody until the first upload after its release"
        for each in ("16/28", "32/27")
    ]
    assert (again.changed, around) == ([], ["10.10.0.0/28", "(10.10.0.16/28)", "(10.10.0.32/27)", "(10.10.0.64/26)"])
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert await blocks(town) == ["10.10.0.0/26"]


async def test_units_of_another_length_move_everybody_and_nobody_loses_his_address_before(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await town.upload(config(lab(prefix=30)))
    before = await town.has("alpha")
    await town.run(manifest("alpha", app(2)))
    after = await town.has("alpha")
    await town.upload(config(lab(prefix=30)))

    assert before == {"app/0": {"lab": "172.20.5.2"}, "app/1": {"lab": "172.20.5.3"}}
    assert after == {"app/0": {"lab": "172.20.5.4/30"}, "app/1": {"lab": "172.20.5.8/30"}}
    assert await blocks(town) == ["172.20.5.0/28"]


async def test_subnets_may_be_written_in_any_order_while_something_between_them_is_held(town: Town) -> None:
    whole = {"range": "10.10.0.0/24", "gateway": "10.10.0.1", "static": ["10.10.0.130"]}
    low, high = {"range": "10.10.0.0/26", "gateway": "10.10.0.1"}, {"range": "10.10.0.192/26", "gateway": "10.10.0.193"}
    await town.upload(config(whole))
    await town.run(manifest("alpha", app(static_ips=["10.10.0.130"]), app(name="web")))
    await town.upload(config(high, low))

    assert await blocks(town) == ["10.10.0.192/26", "10.10.0.0/26", "(10.10.0.128/26)"]


async def test_a_config_that_is_removed_takes_its_networks_along_but_for_what_is_held(town: Town) -> None:
    await town.upload(config())
    await town.upload(SECOND, name="more")
    await town.run(manifest("alpha", app(network="n2")))
    before = await town.ledger.last_change()
    tried = await remove_config(town.ledger, "more", dry=True)
    assert await town.ledger.last_change() == before
    moved = await moved_by_upload(town.ledger, "more", None)
    removed = await remove_config(town.ledger, "more")

    assert (tried, list(removed.changed)) == (removed, ["n2"])
    assert [(each.instance.name, each.held.network) for each in moved] == [
        (each.name, "n2") for each in await town.instances("alpha")
    ]
    assert await town.has("alpha") == {"app/0": {"n2": "172.20.6.2"}}
    with pytest.raises(Rejected, match="references an unknown network 'n2'"):
        await town.deploy(manifest("beta", app(network="n2")))
    await town.run(manifest("beta", app()))
    await town.run(manifest("alpha", app()))
    assert [each.name for each in await town.ledger.papers(CONFIG)] == ["default"]


async def test_no_config_that_others_need_or_that_is_the_last_is_removed(town: Town) -> None:
    await town.upload(config(azs=[{"name": "z1"}]))
    with pytest.raises(Refused, match="is the last one"):
        await remove_config(town.ledger, "default")
    await town.upload(config(lab(range="172.20.6.0/28", gateway="172.20.6.1", az="z1"), name="n2"), name="more")
    before = await town.ledger.last_change()
    with pytest.raises(Rejected, match="unknown availability zone 'z1'"):
        await remove_config(town.ledger, "default")
    with pytest.raises(tenure.NotFound, match="no cloud config 'none'"):
        await remove_config(town.ledger, "none")

    assert await town.ledger.last_change() == before


async def test_the_last_config_is_emptied_as_its_refusal_says(town: Town) -> None:
    await town.upload(config())
    with pytest.raises(Refused, match="To empty it, upload one that has no addresses: ") as caught:
        await remove_config(town.ledger, "default")
    await town.upload(str(caught.value).partition("addresses: ")[2].partition(" [DirectorError")[0])

    assert await town.ledger.networks() == []
