"""The worked example (1.5) of the conformance file: exactly its table, first and second deploy."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import compile_packages
from tests.integrations.bosh.conformance.town import Town, app, manifest
from tests.integrations.bosh.documents.configs import WORKED as CONFIG
from tests.integrations.bosh.documents.manifests import WORKED as MANIFEST

FIRST = {
    "db/0": {"apps": "10.44.16.10"},
    "db/1": {"apps": "10.44.17.10"},
    "web/0": {"apps": "10.44.16.8", "public": "203.0.113.11"},
    "web/1": {"apps": "10.44.17.8", "public": "203.0.113.12"},
    "web/2": {"apps": "10.44.17.9", "public": "203.0.113.13"},
    "cell/0": {"apps": "10.44.16.9", "pods6": "2001:db8:44:101::/64"},
    "cell/1": {"apps": "10.44.17.14", "pods6": "2001:db8:44:102::/64"},
}


async def test_the_first_deploy_gives_the_table(town: Town) -> None:
    await town.upload(CONFIG)
    await town.run(MANIFEST)

    assert await town.has("shop") == FIRST
    assert {f"{each.group}/{each.index}": each.az for each in await town.instances("shop")} == {
        "db/0": "z1", "db/1": "z2", "web/0": "z1", "web/1": "z2", "web/2": "z3", "cell/0": "z1", "cell/1": "z2",
    }  # fmt: skip


async def test_workers_compile_in_their_own_network_and_are_gone_afterwards(town: Town) -> None:
    await town.upload(CONFIG)
    deployed = await town.deploy(MANIFEST)
    working = await compile_packages.begin(town.ledger, "shop", deployed.plan)
    built = [each.address for each in await town.ledger.holdings("build")]
    await compile_packages.end(town.ledger, "shop", deployed.plan)

    assert [each.settings["build"]["ip"] for each in working.workers] == ["10.44.24.2", "10.44.24.3", "10.44.24.4"]
    assert sorted(built) == ["10.44.24.2", "10.44.24.3", "10.44.24.4"]
    assert await town.ledger.holdings("build") == []


async def test_fourteen_blocks_of_the_pods_can_be_had(town: Town) -> None:
    await town.upload(CONFIG)
    pods = manifest("pods", app(14, network="pods6", azs=["z1", "z2"]))
    await town.run(pods)
    with pytest.raises(Refused) as caught:
        await town.run(manifest("more", app(network="pods6", azs=["z1"])))

    blocks = {held["pods6"] for held in (await town.has("pods")).values()}
    assert blocks == {f"2001:db8:44:10{digit:x}::/64" for digit in range(1, 15)}
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_the_second_deploy_moves_only_whom_it_must(town: Town) -> None:
    await town.upload(CONFIG)
    await town.run(MANIFEST)
    before = {each.vm for each in await town.instances("shop")}
    second = CONFIG.replace("[10.44.16.2-10.44.16.7]", "[10.44.16.2-10.44.16.8]").replace("10.44.0.53", "10.44.0.54")
    await town.upload(second)
    smaller = MANIFEST.replace("name: db\n  instances: 2", "name: db\n  instances: 1")
    smaller = smaller.replace("[10.44.16.10, 10.44.17.10]", "[10.44.16.10]")
    deployed = await town.deploy(smaller)
    both = await town.has("shop")
    old = await town.parting("shop")
    await town.finish(deployed)
    after = await town.has("shop")

    assert both["web/0"]["apps"] == "10.44.16.14"
    assert old == {"web/0": {"apps": "10.44.16.8"}}
    assert both["db/1"] == {"apps": "10.44.17.10"}, "held until its VM is gone"
    expected = {name: held for name, held in FIRST.items() if name != "db/1"}
    assert after == {**expected, "web/0": {"apps": "10.44.16.14", "public": "203.0.113.11"}}
    assert await town.parting("shop") == {}
    made = {each.vm for each in await town.instances("shop")}
    assert len(made) == 6
    assert not made & before, "all others are made anew for the new DNS server"
