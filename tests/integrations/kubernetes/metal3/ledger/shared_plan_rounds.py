"""Two clusters and a script of the networks door on one network until it is full; operators and the server are killed.

Judged is what each of the three was told: every address once, every claim's address held for it in the ledger, in words
that name its cluster, namespace and claim, and every instance's for the instance.
"""

import random
import re
import secrets
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from click.testing import CliRunner

import tenure
from tenure.doors.cli.main import main
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import key_of
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.infrastructure.postgres import run_folder, schema_in_thread
from tests.integrations.ganeti.conformance.door import Door
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import (
    BLOCK,
    FIRST,
    NETWORK,
    LedgerServer,
    bound_pool,
    ledger_server,
    say_where,
)
from tests.integrations.kubernetes.metal3.operator_replica import start_replica
from tests.integrations.kubernetes.metal3.serving import Namespace, until

ADDRESSES, WANTED = 40, 20
"""So many addresses for so many claims of each cluster, and as many instances: a third is told that nothing is free."""
LAST = "10.9.0.49"
SETTING = ("group add default", "node add node1", f"network connect {NETWORK}")
FULL = "Exhausted IP Pools"
PRINTED = re.compile(r"\b10\.9\.0\.[1-4]\d\b")
WITHIN_S = 90.0


@dataclass
class Site:
    """A cluster on the plan: a namespace, and its operator as a process."""

    place: Namespace
    realm: str
    process: "subprocess.Popen[bytes]"
    lease: str

    def kill(self) -> None:
        """Kill the operator (``kill -9``), and start another."""
        self.process.kill()
        self.process.wait(10)
        self.process = _started(self.place, self.lease)

    def given(self) -> dict[str, str]:
        """Return what claims were told, as the ledger names them."""
        objects = {key_of(each)[1]: each["spec"]["address"] for each in self.place.all(IP_ADDRESS)}
        found = {}
        for claim in self.place.all(IP_CLAIM):
            name = ((claim.get("status") or {}).get("address") or {}).get("name")
            if name:
                found[f"{self.realm}:ipclaim/{self.place.name}/{key_of(claim)[1]}"] = objects[name]
        return found

    def is_settled(self) -> bool:
        """Return whether every claim has an address, or was told that nothing is free."""
        unserved = self.unserved()
        return set(unserved) <= {FULL} and len(self.given()) + len(unserved) == WANTED

    def is_empty(self) -> bool:
        """Return whether nothing is left."""
        return not self.place.all(IP_POOL) and not self.place.all(IP_CLAIM)

    def unserved(self) -> list[str]:
        """Return why claims have no address."""
        claims = [each for each in self.place.all(IP_CLAIM) if not (each.get("status") or {}).get("address")]
        return [str((each.get("status") or {}).get("errorMessage")) for each in claims]


def _started(place: Namespace, lease: str) -> "subprocess.Popen[bytes]":
    return start_replica(place.server, place.name, lease, f"r-{secrets.token_hex(4)}")


@contextmanager
def site(server: KubeServer, realm: str, ledger: LedgerServer) -> Iterator[Site]:
    """Give a cluster whose pool is bound to the network."""
    with fresh_namespace(server) as name:
        place, lease = Namespace(server, name), f"plan-{secrets.token_hex(5)}"
        say_where(place, f"{ledger.url}?within_s=3", ledger.token)
        bound_pool(place, realm)
        found = Site(place, realm, _started(place, lease), lease)
        try:
            yield found
        finally:
            found.process.kill()
            found.process.wait(10)


@dataclass
class Script:
    """A script that adds instances until nothing is free; what it is told is noted."""

    server: LedgerServer
    codes: dict[str, int] = field(default_factory=dict)
    """How each command ended, by the name of the instance; those that got no answer are repeated."""
    told: dict[str, str] = field(default_factory=dict)
    """The addresses that the commands printed, by the name of the instance."""

    def run(self) -> None:
        """Add instances, one after the other."""
        for number in range(WANTED):
            name = f"web-{number}"
            while (code := self._add(name)) not in (0, 4, 5):  # 4: an earlier try was done, and its answer lost
                assert code == 6, f"{name}: {code}"
                time.sleep(0.2)
            self.codes[name] = code

    def _add(self, name: str) -> int:
        around = {"TENURE_SERVER": self.server.url, "TENURE_TOKEN": self.server.token, "TENURE_HOOKS": None}
        words = ["instance", "add", name, "--net", f"0:ip=pool,network={NETWORK}"]
        result = CliRunner().invoke(main, words, env=around)
        if result.exit_code == 0:
            [self.told[name]] = set(PRINTED.findall(result.output))
        return result.exit_code


def play_round(servers: list[KubeServer], seed: int) -> Counter[str]:
    """Fill a network from three sides while everything is killed once, in an order of the seed; judge what was told."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        store = stack.enter_context(schema_in_thread())
        plan(store)
        served = stack.enter_context(ledger_server(store))
        sites = [
            stack.enter_context(site(each, realm, served))
            for each, realm in zip(servers, ("east", "west"), strict=True)
        ]
        script = Script(served)
        users = [threading.Thread(target=script.run), *(threading.Thread(target=claim, args=(each,)) for each in sites)]
        for user in users:
            user.start()
        faults: list[Callable[[], object]] = [sites[0].kill, sites[1].kill, partial(restart, served, chance)]
        for fault in chance.sample(faults, len(faults)):
            time.sleep(chance.uniform(0.2, 1.5))
            fault()
        for user in users:
            user.join(WITHIN_S)
            assert not user.is_alive(), "a user got no answer"
        with tenure.open(store) as ledger:
            figures = judge(ledger, sites, script)
            remove_all(ledger, sites)
    return figures


def plan(store: str) -> None:
    """Make the network that all share."""
    with tenure.open(store) as ledger:
        ledger.add_network(NETWORK)
        ledger.add_subnet(NETWORK, BLOCK, gateway="10.9.0.1")
        ledger.add_pool(NETWORK, f"{FIRST}-{LAST}")
    Door(store).do(*SETTING)


def claim(site: Site) -> None:
    """Claim addresses, one after the other."""
    for number in range(WANTED):
        site.place.claim(f"c{number}")
        time.sleep(0.02)


def restart(server: LedgerServer, chance: random.Random) -> None:
    """Kill the server of the ledger, and start it again."""
    server.kill()
    time.sleep(chance.uniform(0, 1.0))
    server.start()


def judge(ledger: tenure.Ledger, sites: list[Site], script: Script) -> Counter[str]:
    """Wait until the network is full and everybody knows; then compare what each was told with what the ledger says."""
    until(lambda: len(ledger.holdings(NETWORK)) == ADDRESSES, WITHIN_S)
    for each in sites:
        until(each.is_settled, WITHIN_S)
    held = {str(each.owner): each.address for each in ledger.holdings(NETWORK)}
    told = {owner: address for each in sites for owner, address in each.given().items()}
    instances = {owner: address for owner, address in held.items() if "instance/" in owner or "nic" in owner}
    assert len(set(held.values())) == ADDRESSES, "an address is held twice"
    assert {**told, **instances} == held, (
        f"told otherwise than held: {set(told.items()) ^ (held.items() - instances.items())}"
    )
    added = {name for name, code in script.codes.items() if code != 5}
    there = {owner.rpartition("/")[2] for owner in instances}
    assert len(instances) == len(added), f"added and not there, or there and not added: {added ^ there}"
    assert len(set(script.told.values())) == len(script.told), "the script was told an address twice"
    assert set(script.told.values()) <= set(instances.values()), "the script was told what no instance has"
    for owner, address in told.items():
        assert f"held by {owner} in network {NETWORK}" in str(ledger.why(address))
    assert ledger.verify() == []
    return Counter(rounds=1, claims=len(told), instances=len(instances), refused=3 * WANTED - ADDRESSES)


def remove_all(ledger: tenure.Ledger, sites: list[Site]) -> None:
    """Delete all claims and pools; nothing of them is left in the ledger."""
    for each in sites:
        for kind in (IP_CLAIM, IP_POOL):
            for object in each.place.all(kind):
                each.place.delete(kind, key_of(object)[1])
    for each in sites:
        until(each.is_empty, WITHIN_S)
    left = [str(each.owner) for each in ledger.holdings(NETWORK) if "ipclaim" in str(each.owner)]
    assert left == [], left


def shared_plan_rounds(seed: int, rounds: int) -> Counter[str]:
    """Play rounds on two servers of their own, and print a line of each."""
    total: Counter[str] = Counter()
    with run_folder(), private_kube() as east, private_kube() as west:
        for server in (east, west):
            install(server)
            install_cluster_api(server, *IPAM)
        for number in range(1, rounds + 1):
            figures = play_round([east, west], seed + number)
            print(f"  shared plan {number}/{rounds} (seed {seed + number}): {dict(figures)}", flush=True)
            total.update(figures)
    return total
