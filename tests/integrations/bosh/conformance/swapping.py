"""Groups of ``alpha`` whose addresses change hands."""

from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

POOL = config(lab(static=["172.20.5.10-172.20.5.13"]))


def static(**groups: int) -> str:
    """Write a manifest whose groups have one instance each, on these addresses."""
    return manifest("alpha", *(app(name=name, static_ips=[f"172.20.5.{tail}"]) for name, tail in groups.items()))


async def one(town: Town, group: str) -> DeploymentInstance:
    """Read the only instance of a group."""
    [found] = [each for each in await town.instances("alpha") if each.group == group]
    return found


async def waits(town: Town, group: str) -> list[str]:
    """Return the addresses that a group's instance waits for."""
    return [each["address"] for each in (await one(town, group)).waits]


async def commit(town: Town, group: str) -> DeploymentInstance:
    """Report a new VM of a group."""
    vm, plan = f"vm-{next(town.numbers)}", (await one(town, group)).plan
    return await report_vm.commit(town.ledger, "alpha", f"{group}/0", vm=vm, plan=plan)


async def lose(town: Town, group: str) -> None:
    """Report that a group's VM is gone."""
    await report_vm.lose(town.ledger, "alpha", f"{group}/0")


async def swapping(town: Town) -> str:
    """Have two groups whose plan swaps their addresses; return the plan."""
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    return (await town.deploy(static(a=11, b=10), hand_over=True)).plan
