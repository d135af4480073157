"""The ledger that costly requests are asked of: large in each way that a request can make something of."""

from collections.abc import Sequence

import tenure
from bench.costly_requests import BUSY_ADDRESS, HOARDED, HOARDER, NAMED, NET, PROBE, SITE, SIX, SPARE, WIDE
from tenure.integrations.bosh.cloud_config.configs import upload
from tenure.integrations.bosh.verbs.deploy import deploy
from tenure.kernel.plan.edits import AddNetwork, AddPool, AddSubnet
from tenure.service.apply import operations as do

HELD = 60_000
TENURES = 2500
SUBNETS = 5000
NETWORKS = 1000
PAPERS = 1000
INSTANCES = 4000
AT_ONCE = 2500
CONFIG = (
    f"azs: [{{name: z1}}]\nnetworks: [{{name: {SITE}, subnets: [{{range: 11.0.0.0/16, gateway: 11.0.0.1, az: z1}}]}}]"
)
MANIFEST = (
    f"name: shop\ninstance_groups: [{{name: web, instances: {INSTANCES}, azs: [z1], networks: [{{name: {SITE}}}]}}]"
)


async def make_costly_ground(url: str) -> None:
    """Lay the ledger out through the library, so that its log tells of everything."""
    async with await tenure.open_async(url) as ledger:
        await _lay_out(ledger)
        await _hold(ledger)
        papers = [do.WritePaper(kind="heavy", name=f"p{n}", document={"text": "x" * 20_000}) for n in range(PAPERS)]
        papers += [do.WritePaper(kind="instance", name=f"i{n}", document={"n": n}) for n in range(PAPERS)]
        await _apply(ledger, papers)
        await upload(ledger, "default", CONFIG)
        await deploy(ledger, "bench", MANIFEST)


async def _lay_out(ledger: tenure.AsyncLedger) -> None:
    for name, block in ((NET, "10.0.0.0/8"), (PROBE, "192.168.0.0/16"), (NAMED, "192.168.0.0/16"), (SIX, "8000::/1")):
        await ledger.add_network(name)
        await ledger.add_subnet(name, block)
        await ledger.add_pool(name, block, policy="random")
    for name in (WIDE, SPARE):
        await ledger.add_network(name)
    blocks = [f"10.{n >> 8}.{n & 255}.0/24" for n in range(SUBNETS)]
    subnets = [AddSubnet(network=WIDE, cidr=block) for block in blocks]
    await _apply(ledger, [*subnets, *(AddPool(network=WIDE, range=block) for block in blocks)])
    networks = [AddNetwork(network=f"n{number:04}") for number in range(NETWORKS)]
    await _apply(ledger, networks)


async def _hold(ledger: tenure.AsyncLedger) -> None:
    def place(number: int) -> str:
        return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    wanted = [do.Allocate(network=NET, owner=f"pod/{n}", address=place(n + 1)) for n in range(HELD)]
    await _apply(ledger, wanted)
    for start in range(0, HOARDED, AT_ONCE):
        await ledger.allocate_many(NET, owner=HOARDER, count=AT_ONCE, slot=f"s{start}-")
    again: list[do.Operation] = []
    for number in range(TENURES):
        owner = f"tenant/{number}"
        again.append(do.Allocate(network=NET, owner=owner, address=BUSY_ADDRESS))
        again.append(do.Release(network=NET, owner=owner, address=BUSY_ADDRESS))
    await _apply(ledger, again)


async def _apply(ledger: tenure.AsyncLedger, operations: Sequence[do.Operation]) -> None:
    for start in range(0, len(operations), AT_ONCE):
        await ledger.apply(operations[start : start + AT_ONCE])
