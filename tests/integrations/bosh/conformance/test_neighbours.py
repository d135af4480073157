"""Deployments and networks with NICs in one space: every address once, each told in its own words."""

import asyncio

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest
from tests.integrations.ganeti.conformance.door import Door

NICS = "--subnet add:cidr=172.20.5.0/28,gateway=172.20.5.1 --pool add:172.20.5.2-172.20.5.14,name=pool1"
CLUSTER = (
    "group add default",
    "node add node1",
    f"network add nics --space site {NICS}",
    "network connect nics default -N mode=bridged,link=br0",
)


async def test_both_doors_share_one_space_until_it_is_full(town: Town, place: str) -> None:
    await town.upload(config(lab(static=["172.20.5.14"])))
    door = Door(place)
    await asyncio.to_thread(door.do, *CLUSTER)
    got: list[str] = []
    for number in range(6):
        await town.run(manifest(f"d{number}", app()))
        got += [held["lab"] for held in (await town.has(f"d{number}")).values()]
        await asyncio.to_thread(door.do, f"instance add -n node1 --net 0:network=nics,ip=pool vm{number}")
        told = await asyncio.to_thread(door.ask, f"instance info vm{number}")
        got.append(_address(told))
    await asyncio.to_thread(door.do, "instance add -n node1 --net 0:network=nics,ip=172.20.5.14 last")
    with pytest.raises(Refused) as full:
        await town.run(manifest("late", app()))
    with pytest.raises(Refused) as taken:
        await town.run(manifest("late", app(static_ips=["172.20.5.14"])))
    refused = await asyncio.to_thread(door.call, "instance add -n node1 --net 0:network=nics,ip=pool more")

    assert sorted(got, key=lambda text: int(text.rpartition(".")[2])) == [f"172.20.5.{tail}" for tail in range(2, 14)]
    assert full.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert taken.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert "already reserved by 'instance/last'" in taken.value.message
    assert refused.exit_code != 0
    assert "no free address" in refused.stderr


def _address(told: object) -> str:
    assert isinstance(told, dict)
    [nic] = told["nics"]
    [ip] = nic["ips"]
    return str(ip)
