"""VMs that are made slowly while anything else happens: nobody else gets what one may come up on, nothing is left."""

import random

import pytest

from tenure.doors.deployments.records import load_deployment
from tests.doors.deployments.conformance.maker import NAME, SUBNETS, Maker, three
from tests.doors.deployments.conformance.town import Town

STEPS = 40


@pytest.mark.parametrize("seed", range(6))
async def test_what_a_vm_may_come_up_on_is_its_instances(town: Town, seed: int) -> None:
    await town.upload(three(*SUBNETS.values()))
    maker = Maker(town, random.Random(seed))
    for _ in range(STEPS):
        await maker.act()
    await maker.go_home()

    assert await town.instances(NAME) == []
    assert await load_deployment(town.ledger, NAME) is None
    assert [each for name in SUBNETS for each in await town.ledger.holdings(name)] == []
