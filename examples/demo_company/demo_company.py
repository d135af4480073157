"""A believable company to look at: three sites, VLANs, IPv4 and IPv6, six weeks of history, some claims that wait.

``python demo_company.py sqlite:///demo.db`` fills an empty ledger; ``make run DEMO=1`` serves it. The company's weeks
are lived through on a ledger in memory, by the library's own verbs; then its log is dated back and copied to the store.
"""

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tenure.kernel.errors import PoolExhausted
from tenure.kernel.holdings.holding_model import Change, Holding
from tenure.kernel.plan.plan_model import Network
from tenure.kernel.snapshot import Kind, Section
from tenure.ports import LedgerStore
from tenure.service.engine.engine import Engine
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.engine_ledger import ledger_on
from tenure.wiring import open_async, open_store

DAYS = 42
SEED = 2026
DAY_US = 86_400_000_000


class Plan(NamedTuple):
    """A network of the company: where, which VLAN, which block, what to pick from, what to keep away."""

    name: str
    site: str
    vlan: int
    cidr: str
    pool: str
    reserved: tuple[str, str] | None = None
    unit: int | None = None
    policy: str | None = None
    six: str | None = None


NETWORKS = (
    Plan("fra-servers", "Frankfurt", 110, "10.20.0.0/22", "10.20.0.20-10.20.1.250",
         ("10.20.0.240-10.20.1.15", "load balancers"), six="2001:db8:20:110::/64"),
    Plan("fra-storage", "Frankfurt", 120, "10.20.8.0/24", "10.20.8.10-10.20.8.79"),
    Plan("fra-dmz", "Frankfurt", 130, "198.51.100.0/26", "198.51.100.10-198.51.100.41",
         ("198.51.100.36-198.51.100.41", "kept for the new shop"), six="2001:db8:20:130::/64"),
    Plan("fra-openstack", "Frankfurt", 140, "10.28.0.0/22", "10.28.0.10-10.28.0.250", policy="random"),
    Plan("fra-pods", "Frankfurt", 150, "10.24.0.0/22", "10.24.0.10-10.24.3.250", policy="hashed"),
    Plan("fra-nodes", "Frankfurt", 151, "10.25.0.0/20", "10.25.0.0-10.25.15.255", unit=26),
    Plan("fra-links", "Frankfurt", 199, "10.255.0.0/24", "10.255.0.0-10.255.0.255", unit=31),
    Plan("lds-office", "Leeds", 210, "10.30.0.0/23", "10.30.0.50-10.30.0.240",
         ("10.30.0.200-10.30.0.219", "printers"), policy="sticky", six="2001:db8:30:210::/64"),
    Plan("lds-phones", "Leeds", 220, "10.30.4.0/24", "10.30.4.20-10.30.4.99", policy="sticky"),
    Plan("rtm-warehouse", "Rotterdam", 310, "10.40.0.0/23", "10.40.0.30-10.40.0.120", policy="sticky"),
    Plan("rtm-cameras", "Rotterdam", 320, "10.40.4.0/26", "10.40.4.5-10.40.4.24"),
)  # fmt: skip

SIX = Plan(
    "customer-prefixes", "everywhere", 400, "2001:db8:f000::/40", "2001:db8:f000::-2001:db8:f0ff:ffff::", unit=56
)

SERVICES = ("web", "api", "db", "cache", "queue", "search", "mail", "build", "metrics", "vpn")
TEAMS = ("shop", "tracking", "billing", "platform", "data")
PEOPLE = ("amara", "bjorn", "chiara", "dmitri", "edda", "farid", "greta", "hugo", "ines", "jonas", "kira", "lev")


class Company:
    """Lives through the company's weeks, a day at a time. The same chance every time: the same company."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._chance = random.Random(SEED)  # noqa: S311 - nothing secret comes of it
        self._of = {
            name: ledger.asked_by(f"token/{name}")
            for name in ("network-team", "terraform", "kubernetes", "neutron", "dhcp", "billing")
        }
        self._held: dict[str, list[Holding]] = {plan.name: [] for plan in (*NETWORKS, SIX)}
        self._numbers: dict[str, int] = {}

    async def lay_out(self) -> None:
        """Write the address plan."""
        ledger = self._of["network-team"]
        for plan in (*NETWORKS, SIX):
            labels = {"site": plan.site, "vlan": str(plan.vlan)}
            await ledger.add_network(plan.name, space="company", labels=labels, tags=(f"vlan{plan.vlan}",))
            gateway = None if plan.unit else str(plan.cidr.partition("/")[0].rpartition(".")[0]) + ".1"
            name = f"{plan.name}-{'v6' if ':' in plan.cidr else 'v4'}"
            kept: list[str] | None = [] if plan.unit else None
            await ledger.add_subnet(plan.name, plan.cidr, gateway=gateway, name=name, unit=plan.unit, keep_back=kept)
            await ledger.add_pool(plan.name, plan.pool, name="main", policy=plan.policy)
            if plan.reserved is not None:
                await ledger.reserve(plan.name, plan.reserved[0], reason=plan.reserved[1])
            if plan.six is not None:
                base = plan.six.removesuffix("/64")
                await ledger.add_subnet(plan.name, plan.six, gateway=f"{base}1", name=f"{plan.name}-v6")
                await ledger.add_pool(plan.name, f"{base}1000-{base}ffff", name="v6", policy="random")
        await ledger.preallocate("fra-servers", "instance/db-primary", "10.20.0.10", description="named in firewalls")
        await ledger.preallocate("lds-office", "device/reception-printer", "10.30.0.200")

    async def live(self, day: int) -> None:
        """Live through one day: much is new in the first week, then it comes and goes."""
        new = 12 if day < 7 else 4
        await self._some(new, 2, self._instance)
        await self._some(new // 2, 1, self._port)
        await self._some(new * 4, new * 2, self._pod)
        await self._some(new // 2, 1, self._device)
        if day % 3 == 0:
            await self._allocate("fra-nodes", "kubernetes", f"node/fra-{self._next('node'):02}")
            await self._allocate("fra-links", "network-team", f"link/core-{self._next('link')}")
            await self._allocate("customer-prefixes", "billing", f"customer/{self._next('customer') + 41000}")
        if day % 2 == 0:
            await self._allocate("rtm-cameras", "dhcp", f"camera/gate-{self._next('camera')}")
            await self._public()
        if day > 7:
            await self._leavers()

    async def _some(self, most: int, least: int, work: object) -> None:
        for _ in range(self._chance.randint(least, max(most, least))):
            await work()  # type: ignore[operator]  # one of the methods below

    def _next(self, kind: str) -> int:
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return self._numbers[kind]

    async def _allocate(self, network: str, actor: str, owner: str, **said: object) -> None:
        with contextlib.suppress(PoolExhausted):  # a full pool is a waiting room, and these do not wait
            self._held[network].append(await self._of[actor].allocate(network, owner=owner, **said))  # type: ignore[arg-type]

    async def _instance(self) -> None:
        service = self._chance.choice(SERVICES)
        owner = f"instance/{service}-{self._next(service)}"
        team = {"team": self._chance.choice(TEAMS), "service": service}
        said = {"labels": team, "carrier": f"hv-fra-{self._chance.randint(1, 12):02}"}
        await self._allocate("fra-servers", "terraform", owner, pool="main", slot="nic0/ip0", **said)
        if self._chance.random() < 0.6:
            await self._allocate("fra-servers", "terraform", owner, pool="v6", slot="nic0/ip1", **said)
        if service in ("db", "search"):
            await self._allocate("fra-storage", "terraform", owner, slot="nic1/ip0", **said)

    async def _port(self) -> None:
        number = f"{self._chance.getrandbits(32):08x}-{self._chance.getrandbits(16):04x}"
        await self._allocate("fra-openstack", "neutron", f"os-fra:port/{number}", carrier=f"vm-{number[:4]}")

    async def _pod(self) -> None:
        team = self._chance.choice(TEAMS)
        owner = f"k8s-fra:pod/{team}/{self._chance.choice(SERVICES)}-{self._chance.getrandbits(20):05x}"
        await self._allocate("fra-pods", "kubernetes", owner, labels={"namespace": team})

    async def _device(self) -> None:
        who, site = self._chance.choice(PEOPLE), self._chance.choice(("lds-office", "lds-phones", "rtm-warehouse"))
        kind = {"lds-office": "laptop", "lds-phones": "phone", "rtm-warehouse": "scanner"}[site]
        pool = {"pool": "main"} if site == "lds-office" else {}
        await self._allocate(site, "dhcp", f"{kind}/{who}-{self._next(kind)}", description=f"{who}'s {kind}", **pool)

    async def _public(self) -> None:
        owner = f"instance/edge-{self._next('edge')}"
        await self._allocate("fra-dmz", "terraform", owner, pool="main", labels={"team": "platform", "exposed": "yes"})

    async def _leavers(self) -> None:
        """Let some go: pods every hour, machines now and then; and one address changes hands."""
        for network, share in (
            ("fra-pods", 0.05),
            ("fra-servers", 0.02),
            ("fra-openstack", 0.06),
            ("lds-office", 0.03),
        ):
            held = self._held[network]
            for holding in [each for each in held if self._chance.random() < share]:
                held.remove(holding)
                ledger = self._of["kubernetes" if network == "fra-pods" else "terraform"]
                await ledger.release(network, holding.address, owner=holding.owner, request="clean-up")
        if self._chance.random() < 0.3:
            held = self._held["fra-storage"]
            old = held.pop(self._chance.randrange(len(held)))
            to = f"{old.owner}-replaced"
            ledger = self._of["terraform"]
            held.append(await ledger.transfer("fra-storage", old.address, owner=old.owner, to=to, to_slot=old.slot))


async def waits(ledger: AsyncLedger) -> None:
    """Have claims wait where the pool is full, and some holdings be neither here nor there."""
    shop = ledger.asked_by("token/terraform")
    number = waiting = 0
    while waiting < 5:
        number += 1
        status = await shop.claim("fra-dmz", owner=f"instance/shop-edge-{number}", pool="main", patience_s=30 * 86_400)
        waiting += status.state == "waiting"
    for number in range(3):
        await shop.hold("fra-servers", owner=f"instance/canary-{number}", pool="main", lasts_s=7 * 86_400)
    await ledger.modify_pool("fra-pods", "main", cooling_s=86_400)
    gone = await ledger.holdings("fra-pods", limit=9)
    for holding in gone:
        await ledger.asked_by("token/kubernetes").release("fra-pods", holding.address, owner=holding.owner)


async def dated_back(store: LedgerStore, ends: list[int]) -> AsyncIterator[Section]:
    """Stream everything, as if each day's changes had been made in that day's working hours."""
    sections = [section async for section in store.contents()]
    changes = [change for section in sections if section.kind is Kind.CHANGES for change in section.items]
    first_us = _morning(datetime.now(UTC) - timedelta(days=len(ends)))
    times: dict[int, int] = {}
    begin = 0
    for day, end in enumerate(ends):
        for change in changes[begin:end]:
            place = (change.seq - begin) / (end - begin + 1)
            times.setdefault(change.at_us, first_us + day * DAY_US + int(place * DAY_US * 10 / 24))
        begin = end
    since = {change.generation: times[change.at_us] for change in reversed(changes)}
    # The plan is written once, on the first day.
    edited: dict[int, list[int]] = {}
    for change in changes:
        if change.generation is None and change.network is not None:
            edited.setdefault(change.network, []).append(times[change.at_us])
    moved: dict[Kind, Callable[[Any], object]] = {
        Kind.NETWORKS: lambda each: each._replace(network=_made_then(each.network, edited[each.network.id])),
        Kind.CHANGES: lambda each: _told_then(each, times[each.at_us], since),
        Kind.HOLDINGS: lambda each: each._replace(since_us=since[each.generation]),
    }
    for section in sections:
        move = moved.get(section.kind)
        yield section if move is None else Section(section.kind, [move(each) for each in section.items])


def _made_then(network: Network, edits: list[int]) -> Network:
    return replace(network, created_us=edits[0], modified_us=edits[-1])


def _told_then(change: Change, at_us: int, since: dict[int | None, int]) -> Change:
    """Date a change back, and in it the time since which the holding was held that it ended."""
    details = change.details
    if "since_us" in details:
        details = {**details, "since_us": since[change.generation]}
    return change._replace(at_us=at_us, details=details)


def _morning(day: datetime) -> int:
    return int(day.replace(hour=8, minute=0, second=0, microsecond=0).timestamp() * 1_000_000)


async def fill(url: str) -> str:
    """Fill an empty ledger with the company; say what is in it."""
    target = await open_store(url)
    try:
        if await target.spaces():
            return f"{url} has a plan already; it is left as it is"
        memory = await open_store("memory:")
        ledger = ledger_on(Engine(memory, name="demo", chance=random.Random(SEED)))  # noqa: S311
        company, ends = Company(ledger), []
        await company.lay_out()
        for day in range(DAYS):
            await company.live(day)
            ends.append(await ledger.last_change())
        await target.fill(dated_back(memory, ends))
        await ledger.close()
    finally:
        await target.close()
    async with await open_async(url) as ledger:
        await waits(ledger)
        networks = await ledger.networks()
        held = sum([len(await ledger.holdings(network.name)) for network in networks])
        waiting, changes = len(await ledger.waiting()), await ledger.last_change()
        assert await ledger.verify() == []
    told = f"{len(networks)} networks, {held} holdings, {waiting} claims that wait"
    return f"{url}: {told}, {changes} changes in {DAYS} days"


if __name__ == "__main__":
    print(asyncio.run(fill(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///demo.db")))
