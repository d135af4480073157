"""What is measured on Kubernetes: the runtime beside other clients, claims beside Metal3's, VM pools beside Go's."""

from dataclasses import replace
from importlib.util import find_spec

from bench.cases import P99_SHARE, SMALLER, Case, Pair, Promise, rate
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import STORED_INDEXES
from tenure.integrations.vmpool.vm_pool_settings import PoolMode

WORK = "kubernetes-"
OURS, BARE, LISTED = f"{WORK}ours", f"{WORK}bare", f"{WORK}listed"
ADDRESSES, ADDRESSES_JUDGED = f"{WORK}addresses", f"{WORK}addresses-webhooks"
"""Creates of IPAddress objects, without webhooks and where the operator's are registered."""
CLAIMS_WORK = f"{WORK}claims-"
CLAIMS_OURS, CLAIMS_BARE, CLAIMS_METAL3, CLAIMS_UNTHROTTLED = (
    CLAIMS_WORK + name for name in ("ours", "bare", "metal3", "metal3-unthrottled")
)
"""Claims that are there before their pool: ours with and without webhooks, Metal3's manager as shipped and without
limit of its client."""
CLAIMS_AT_ONCE, CLAIMS_CLUSTER_API, CLAIMS_IN_CLUSTER = (
    CLAIMS_WORK + name for name in ("at-once", "cluster-api", "in-cluster")
)
"""Claims that are all created at once: Metal3's kind and Cluster API's by ours, and Cluster API's by its provider."""
CLAIMS_HELD = f"{CLAIMS_WORK}held"
"""Claims for a pool of which addresses are held."""
PEERS = (CLAIMS_METAL3, CLAIMS_UNTHROTTLED, CLAIMS_IN_CLUSTER)
"""The operators of others."""
SWEPT = (CLAIMS_AT_ONCE, CLAIMS_UNTHROTTLED, CLAIMS_IN_CLUSTER)
"""Whose claims a second are drawn; the manager of Metal3 without limit of its client."""
SWEEP = (0, 500, 1000, 2000, 4000)
"""How many addresses are held when the claims of the picture come."""
VM_POOL_WORK = f"{WORK}vmpool-"
VM_POOL_OURS, VM_POOL_GO, VM_POOL_PLAIN = (VM_POOL_WORK + name for name in ("ours", "go", "plain"))
"""Nodes that allocate from one ConfigMap at once: by ours, by the Go algorithm of the seed's time; and nodes that read
and write a ConfigMap of that size, each its own, which is the least that an allocation can cost."""
VM_POOL_PER_IP, VM_POOL_SHARDS, VM_POOL_LEDGER, VM_POOL_CREATES = (
    VM_POOL_WORK + name for name in ("per-ip", "shards", "ledger", "creates")
)
"""The same in the other modes; and nodes that create small objects, which nobody else wants: the limit of the first."""
VM_POOL_MODES: dict[str, PoolMode] = {
    VM_POOL_OURS: "configmap",
    VM_POOL_PER_IP: "per-ip",
    VM_POOL_SHARDS: "shards",
    VM_POOL_LEDGER: "ledger",
}
VM_POOL_CREATED = 30
"""How many objects each node creates: an allocation in the mode per-ip is two, so the server has as much to do."""
OTHERS = ("kubernetes_asyncio", "lightkube")
"""Clients that people write controllers with, where they are installed (``make bench`` does); no bar is put on them."""

STORE = "kubernetes"
TASKS = 32
WRITES = 1000
OBJECTS = 20_000
CLAIMS = 500
"""As many claims as are served in a measurement; ``--claims`` says another number."""
BURST = 1000
MANY_HELD = 20_000
"""Addresses that a pool has handed out. Flatness is also measured where ``status.indexes`` is largest (KD15)."""
HELD_COUNT = 2000
"""So many claims come while addresses are held: few last a second, and then one pause of the API server decides."""
FILLED_AT_ONCE = 2000
"""So many claims come at once while a pool is filled."""
WARMED_UP = FILLED_AT_ONCE
"""Addresses that the pool gives before the memory is noted. All code has run by then, and for as many claims at a time
as later: what a burst of claims takes, it takes once, and not for each address that is held."""
MB_PER_10_000 = 30.0
BURST_SHARE = 1.5
"""The slowest of a burst wait at most so many times as long as as many claims take at the usual rate (KD15)."""
IN_FLIGHT = 64
"""As many requests as the operator has in flight: what creating addresses alone is measured with (KD15)."""
NODES = 50
VM_POOL_IPS = 1000
VM_POOL_TIMEOUT_S = 60.0
"""VS11."""
KB_AN_OBJECT = 3.0
"""With objects of 1 KB: what an object may cost in a cache."""


def is_kubernetes(pair: Pair) -> bool:
    """Say whether a pair is one of these."""
    return pair.subject.work.startswith(WORK)


def is_claims(pair: Pair) -> bool:
    """Say whether a pair is about claims that operators serve."""
    return pair.subject.work.startswith(CLAIMS_WORK)


def kubernetes_pairs(*, quick: bool, claims: int) -> list[Pair]:
    """List what is compared on one API server, with so many claims."""
    ours = Case(STORE, OURS, callers=TASKS, count=WRITES // 10 if quick else WRITES)
    objects = OBJECTS // 10 if quick else OBJECTS
    listed = Case(STORE, LISTED, callers=1, count=objects)
    memory = Promise("peak_mb", SMALLER, round(objects * KB_AN_OBJECT / 1024, 1), relative=False)
    return [
        Pair("kubernetes-create", "creates / bare aiohttp", ours, replace(ours, work=BARE), rate(0.85)),
        Pair("kubernetes-list", f"a cache of {objects:,} objects of 1 KB", listed, None, (memory,)),
        *(_other(name, ours) for name in OTHERS if find_spec(name)),
        *_claim_pairs(claims, quick=quick),
        *_vm_pool_pairs(NODES // 5 if quick else NODES),
    ]


def _vm_pool_pairs(nodes: int) -> list[Pair]:
    """List what allocating from one ConfigMap is compared with: no allocation of ours may fail."""
    once = Case(STORE, VM_POOL_OURS, "hashed", "10.20.0.0/22", callers=1, servers=nodes, count=1)
    again = replace(once, count=10)
    none = (Promise("failed_share", SMALLER, 0.0, relative=False),)
    title = f"{nodes} nodes at once on {VM_POOL_IPS:,} VMs"
    return [
        Pair("kubernetes-vmpool-burst", f"{title} / GET + PUT", once, replace(once, work=VM_POOL_PLAIN), none),
        Pair("kubernetes-vmpool-burst-go", f"{title} / Go", once, replace(once, work=VM_POOL_GO)),
        Pair(
            "kubernetes-vmpool-loop", f"{title}, 10 each / GET + PUT", again, replace(again, work=VM_POOL_PLAIN), none
        ),
        Pair("kubernetes-vmpool-loop-go", f"{title}, 10 each / Go", again, replace(again, work=VM_POOL_GO)),
        *_vm_pool_modes(again, f"{title}, 10 each"),
    ]


def _vm_pool_modes(again: Case, title: str) -> list[Pair]:
    """List what the other modes are compared with; only the mode per-ip has a bar on its rate."""
    none = Promise("failed_share", SMALLER, 0.0, relative=False)
    few = Promise("retries", SMALLER, 0.5, relative=False)
    creates = replace(again, work=VM_POOL_CREATES, count=VM_POOL_CREATED)
    per_ip, shards, ledger = (replace(again, work=work) for work in (VM_POOL_PER_IP, VM_POOL_SHARDS, VM_POOL_LEDGER))
    return [
        Pair("kubernetes-vmpool-per-ip", f"per-ip, {title} / creates", per_ip, creates, (*rate(0.3), none, few)),
        Pair("kubernetes-vmpool-per-ip-go", f"per-ip, {title} / Go", per_ip, replace(again, work=VM_POOL_GO)),
        Pair("kubernetes-vmpool-shards", f"8 shards, {title} / creates", shards, creates, (none,)),
        Pair("kubernetes-vmpool-ledger", f"ledger, {title} / creates", ledger, creates, (none,)),
    ]


def _claim_pairs(count: int, *, quick: bool) -> list[Pair]:
    """List what serving claims of one pool is compared with (KD15)."""
    ours = Case(STORE, CLAIMS_OURS, "sequential", callers=TASKS, count=count)
    shipped, unthrottled, bare, capi, in_cluster = (
        replace(ours, work=work)
        for work in (CLAIMS_METAL3, CLAIMS_UNTHROTTLED, CLAIMS_BARE, CLAIMS_CLUSTER_API, CLAIMS_IN_CLUSTER)
    )
    creates = Case(STORE, ADDRESSES, callers=IN_FLIGHT, count=count)
    judged = replace(creates, work=ADDRESSES_JUDGED)
    burst = replace(ours, work=CLAIMS_AT_ONCE, count=BURST // 10 if quick else BURST)
    slowest = Promise(P99_SHARE, SMALLER, BURST_SHARE)
    served_beside = count if quick else max(count, HELD_COUNT)
    long = replace(ours, count=served_beside)
    return [
        Pair("kubernetes-claims-judged", f"{count} claims / creates of IPAddress", ours, judged, rate(0.2)),
        Pair("kubernetes-claims-unjudged", "claims / creates without webhooks", ours, creates, rate(0.2)),
        Pair("kubernetes-claims-bare", "claims / creates, both without webhooks", bare, creates),
        Pair("kubernetes-claims-metal3", "claims / Metal3 as shipped", ours, shipped, rate(8.0)),
        Pair("kubernetes-claims-unthrottled", "claims / Metal3, no limit", ours, unthrottled, rate(4.0)),
        Pair("kubernetes-claims-in-cluster", "Cluster API's claims / in-cluster", capi, in_cluster),
        Pair("kubernetes-claims-burst", f"{burst.count} claims at once, p99 / at the rate", burst, ours, (slowest,)),
        *(_held_pair(long, name, held // 10 if quick else held) for name, held in _held(served_beside).items()),
    ]


def _held(count: int) -> dict[str, int]:
    """Return how many addresses are held when so many claims come; with one more than 5,000, no list is stored."""
    return {str(STORED_INDEXES): max(STORED_INDEXES - count, 1), str(MANY_HELD): MANY_HELD}


def _held_pair(ours: Case, name: str, held: int) -> Pair:
    """Compare a pool that has handed out addresses with an empty one; and how much memory these take."""
    full = replace(ours, work=CLAIMS_HELD, held=held)
    assert full.count is not None
    addresses = held + full.count - min(WARMED_UP, held)
    memory = Promise("peak_mb", SMALLER, round(addresses / 10_000 * MB_PER_10_000, 1), relative=False)
    title = f"{held:,} addresses held / none"
    return Pair(f"kubernetes-claims-{name}", title, full, replace(full, held=0), (*rate(0.8), memory))


def _other(name: str, ours: Case) -> Pair:
    return Pair(f"kubernetes-{name}", f"creates, the runtime / {name}", ours, replace(ours, work=f"{WORK}{name}"))
