"""Many deploys at once, by real processes: who finds room is served whole, and who does not holds nothing."""

import asyncio
import os

import tenure
from tenure.doors.deployments.deploying import deploy
from tenure.doors.deployments.faults import Kind, Refused
from tests.doors.deployments.conformance.town import Town, app, config, lab, manifest

SERVED, FULL, OTHER = 0, 3, 1


async def apply(place: str, name: str, instances: int) -> int:
    """Apply a deployment; return what came of it."""
    async with await tenure.open_async(place) as ledger:
        try:
            await deploy(ledger, "manifest.yml", manifest(name, app(instances)))
        except Refused as error:
            return FULL if error.kind is Kind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY else OTHER
        return SERVED


def in_processes(place: str, deployments: list[tuple[str, int]]) -> list[int]:
    """Apply deployments at once, each in a process of its own."""
    children = []
    for name, instances in deployments:
        child = os.fork()
        if not child:
            outcome = OTHER
            try:
                outcome = asyncio.run(apply(place, name, instances))
            finally:
                os._exit(outcome)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


async def test_of_ten_deployments_at_once_six_find_room_and_four_hold_nothing(town: Town, place: str) -> None:
    await town.upload(config(lab(reserved=["172.20.5.8-172.20.5.14"])))
    names = [f"d{number}" for number in range(10)]
    outcomes = await asyncio.to_thread(in_processes, place, [(name, 1) for name in names])

    assert sorted(outcomes) == [SERVED] * 6 + [FULL] * 4
    held = {name: await town.tails(name) for name in names}
    assert sorted(tails["app/0"] for tails in held.values() if tails) == [f".{tail}" for tail in range(2, 8)]
    assert [bool(tails) for tails in held.values()] == [outcome == SERVED for outcome in outcomes]
    assert len(await town.ledger.holdings("lab")) == 6


async def test_deployments_of_several_instances_get_all_or_nothing(town: Town, place: str) -> None:
    await town.upload(config())
    names = [f"d{number}" for number in range(6)]
    outcomes = await asyncio.to_thread(in_processes, place, [(name, 3) for name in names])

    assert sorted(outcomes) == [SERVED] * 4 + [FULL] * 2
    assert sorted([len(await town.tails(name)) for name in names]) == [0, 0, 3, 3, 3, 3]
    assert len(await town.ledger.holdings("lab")) == 12
