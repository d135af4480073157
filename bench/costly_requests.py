"""The dearest requests that a token may send: each route with the largest input that its limits let in."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MANY = 10_000
"""Operations, wishes or releases that one request may carry."""

GROUPS = 11_000
"""Instance groups of a manifest that is as large as its limit of values lets it be."""

NET, SIX, WIDE, SITE, PROBE = "net", "six", "wide", "site", "probe"
SPARE, NAMED = "spare", "named"
HOARDER = "pod/hoarder"
HOARDED = 20_000
BUSY_ADDRESS = "10.9.9.9"
READ, ALLOCATE, ADMIN = "read", "allocate:*", "admin"
SHOP = "name: shop\ninstance_groups:\n"
HOARD = f"/owners/{HOARDER.replace('/', '%2F')}"

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Costly:
    """One request, and the scope that is enough to send it."""

    name: str
    method: str
    path: str
    scope: str
    what: str
    body: Callable[[], Body | bytes] | None = None
    refused: bool = False
    """A limit stands before it: the answer is a refusal, which must be cheap, too."""

    def sent(self) -> bytes:
        """Return the body as it is sent."""
        made = b"" if self.body is None else self.body()
        return made if isinstance(made, bytes) else json.dumps(made, separators=(",", ":")).encode()


def requests() -> list[Costly]:
    """List them, readers' first."""
    return [*_plan_read(), *_holdings_read(), *_read_by_post(), *_documents(), *_allocating(), *_ending(), *_editing()]


def _group(make: Callable[[int], Body]) -> Callable[[], Body]:
    return lambda: {"operations": [make(number) for number in range(MANY)]}


def _list(field: str, make: Callable[[int], Body], **more: Any) -> Callable[[], Body]:
    return lambda: {field: [make(number) for number in range(MANY)], **more}


def _low(number: int) -> str:
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def _plan_read() -> Sequence[Costly]:
    labels = "&".join(f"label=l{number}" for number in range(400))
    return [
        Costly("networks", "GET", "/networks?limit=1000", READ, "1,000 networks, one of them of 5,000 subnets"),
        Costly("network", "GET", f"/networks/{WIDE}", READ, "a network of 5,000 subnets"),
        Costly("subnets", "GET", f"/networks/{WIDE}/subnets", READ, "5,000 subnets"),
        Costly("spaces", "GET", "/spaces", READ, "1,000 spaces"),
        Costly("utilisation", "GET", "/utilisation", READ, "1,000 networks"),
        Costly("used", "GET", f"/networks/{WIDE}/utilisation", READ, "5,000 subnets"),
        Costly("timeline", "GET", f"/networks/{NET}/timeline?hours=744&points=2000", READ, "2,000 points"),
        Costly("map", "GET", f"/networks/{NET}/map?cells=4096", READ, "4,096 cells of a /8 with 80,000 held"),
        Costly("map-six", "GET", f"/networks/{SIX}/map?cells=4096", READ, "4,096 cells of an IPv6 /1"),
        Costly("everywhere", "GET", f"/holdings?limit=1000&{labels}", READ, "a filter of 400 labels, 1,000 networks"),
    ]


def _holdings_read() -> Sequence[Costly]:
    every, none = "text=0.0.0.0-255.255.255.255", "text=nowhere"
    return [
        Costly("holdings", "GET", f"/networks/{NET}/holdings?{none}", READ, "a filter that none of 80,000 fits"),
        Costly("owner", "GET", HOARD, READ, f"an owner of {HOARDED:,}"),
        Costly("owned", "GET", f"/networks/{NET}/holdings?owner=pod%2Fhoarder", READ, f"an owner of {HOARDED:,}"),
        Costly("search", "GET", "/search?limit=10000&text=pod", READ, "10,000 found of 80,000"),
        Costly("search-none", "GET", f"/search?limit=10000&{none}", READ, "none found of 80,000"),
        Costly("search-all", "GET", f"/search?limit=10000&{every}", READ, "all of IPv4, 10,000 found"),
        Costly("why", "GET", f"/addresses/{BUSY_ADDRESS}/why", READ, "1,000 networks"),
        Costly("history", "GET", f"/addresses/{BUSY_ADDRESS}/history", READ, "2,500 tenures"),
        Costly("changes", "GET", "/changes?limit=1000&actor=nobody", READ, "a filter that no entry fits"),
        Costly("papers", "GET", "/papers/heavy?limit=1000", READ, "1,000 papers of 20 kB"),
        Costly("instances", "GET", "/instances?limit=1000", READ, "1,000 instances"),
        Costly("claims", "GET", "/claims", READ, "1,000 networks"),
        Costly("deployment", "GET", "/deployments/shop", READ, "4,000 instances"),
        Costly("deployments", "GET", "/deployments", READ, "4,000 instances"),
    ]


def _read_by_post() -> Sequence[Costly]:
    deep = b'{"operations":' + b"[" * 400_000 + b"]" * 400_000 + b"}"
    none = _list("operations", lambda _: {"op": "x" * 390})
    expect = _group(lambda _: {"op": "expect", "network": NET, "serial": 3})
    free = _group(lambda n: {"op": "expect_no_holdings", "network": NET, "range": f"{_low(n + 2_000_000)}-10.255.0.0"})
    vms = _list("vms", lambda n: f"{n:0>255}")  # type: ignore[arg-type,return-value]  # texts, not mappings
    return [
        Costly("expect", "POST", ":apply", READ, f"{MANY:,} expect", expect),
        Costly("expect-free", "POST", ":rehearse", READ, f"{MANY:,} expect_no_holdings", free, refused=True),
        Costly("deep", "POST", ":apply", READ, "400,000 lists inside each other", lambda: deep, refused=True),
        Costly("garbage", "POST", ":apply", READ, "operations that are none, 4 MB", none, refused=True),
        Costly("check", "POST", "/deployments/shop:check", READ, "10,000 VMs of 255 characters", vms),
    ]


def _manifest(rest: str) -> Callable[[], Body]:
    return lambda: {"manifest": f"name: shop\ninstance_groups: []\nx-a: {rest}"}


def _groups() -> Body:
    made = (f"- {{name: g{n}, instances: 1, azs: [z1], networks: [{{name: {SITE}}}]}}\n" for n in range(GROUPS))
    return {"manifest": SHOP + "".join(made)}


def _config() -> Body:
    blocks = (f"11.{number >> 8}.{number & 255}" for number in range(15_000))
    subnets = ",".join(f"{{range: {block}.0/24, gateway: {block}.1, az: z1}}" for block in blocks)
    return {"text": f"azs: [{{name: z1}}]\nnetworks: [{{name: {SITE}, subnets: [{subnets}]}}]", "dry_run": True}


def _documents() -> Sequence[Costly]:
    diff = ("POST", "/deployments:diff", READ)
    aliases = "&a [" + "1, " * 900 + "1]\nx-b: [" + "*a, " * 900 + "*a]"
    web = f"{SHOP}- {{name: web, instances: 4000, azs: [z1], networks: [{{name: {SITE}}}]}}\n"
    return [
        Costly("diff", *diff, f"{GROUPS:,} instance groups", _groups),
        Costly("diff-scalars", *diff, "490,000 numbers", _manifest("[" + "1," * 490_000 + "1]"), refused=True),
        Costly("diff-mappings", *diff, "330,000 mappings", _manifest("[" + "{}," * 330_000 + "1]"), refused=True),
        Costly("diff-aliases", *diff, "900 aliases of a list of 900", _manifest(aliases), refused=True),
        Costly("diff-deep", *diff, "490,000 lists inside each other", _manifest("[" * 490_000), refused=True),
        Costly("diff-text", *diff, "one text of 960,000 characters", _manifest("a" * 960_000)),
        Costly("plan", "POST", "/deployments:plan", ADMIN, "4,000 instances", lambda: {"manifest": web}),
        Costly("plan-groups", "POST", "/deployments:plan", ADMIN, f"{GROUPS:,} instance groups", _groups),
        Costly("config", "PUT", "/cloud-configs/default", ADMIN, "15,000 subnets, a dry run", _config),
    ]


def _allocating() -> Sequence[Costly]:
    many = ("POST", f"/networks/{NET}:allocate_many", ALLOCATE)
    run = {"op": "allocate_run", "network": SIX, "owners": [f"r/{n}" for n in range(MANY)], "slots": [""] * MANY}
    lowest = _list("wishes", lambda n: {"owner": f"low/{n}", "policy": "lowest"}, all_or_none=False)
    named = _list("wishes", lambda n: {"owner": f"named/{n}", "address": f"192.168.{1 + n // 250}.{1 + n % 250}"})
    tried = _group(lambda n: {"op": "allocate", "network": NET, "owner": f"dry/{n}"})
    turns = _group(
        lambda n: (
            {"op": "allocate", "network": NET, "owner": f"turn/{n}"}
            if n % 2 == 0
            else {"op": "release_owner", "owner": f"turn/{n - 1}"}
        )
    )
    each = _list("wishes", lambda n: {"owner": f"each/{n}"}, all_or_none=False)
    return [
        Costly("allocate-all", *many, f"{MANY:,} wishes, all or none", _list("wishes", lambda n: {"owner": f"a/{n}"})),
        Costly("allocate-each", *many, f"{MANY:,} wishes, each on its own", each),
        Costly("allocate-lowest", *many, f"{MANY:,} wishes, each on its own, lowest", lowest),
        Costly("named-all", "POST", f"/networks/{NAMED}:allocate_many", ALLOCATE, f"{MANY:,} named addresses", named),
        Costly("turns", "POST", ":apply", ALLOCATE, f"{MANY:,} allocate and release_owner in turn", turns),
        Costly("try-allocate", "POST", ":rehearse", ALLOCATE, f"{MANY:,} allocate", tried),
        Costly("run", "POST", ":apply", ALLOCATE, f"a run of {MANY:,}", lambda: {"operations": [run]}),
    ]


def _ending() -> Sequence[Costly]:
    named = _list(
        "releases",
        lambda n: {"owner": f"named/{n}", "address": f"192.168.{1 + n // 250}.{1 + n % 250}"},
        all_or_none=False,
    )
    low = _list("releases", lambda n: {"owner": f"pod/{n}", "address": _low(n + 1)})

    def held(operation: str, **more: str) -> Callable[[], Body]:
        said = {"op": operation, "network": NET, **more}
        return _group(lambda n: {**said, "owner": f"pod/{n + 20_000}", "address": _low(n + 20_001)})

    owners = _group(lambda n: {"op": "release_owner", "owner": f"pod/{n + 40_000}"})
    return [
        Costly("release-each", "POST", f"/networks/{NAMED}:release_many", ALLOCATE, f"{MANY:,}, each alone", named),
        Costly("release-all", "POST", f"/networks/{NET}:release_many", ALLOCATE, f"{MANY:,}, all or none", low),
        Costly("modify", "POST", ":apply", ALLOCATE, f"{MANY:,} modify_holding", held("modify_holding", carrier="vm")),
        Costly("transfer", "POST", ":apply", ALLOCATE, f"{MANY:,} transfer", _group(_transfer)),
        Costly("release-owners", "POST", ":apply", ALLOCATE, f"{MANY:,} release_owner", owners),
        Costly("release-owner", "POST", f"{HOARD}:release", ALLOCATE, f"an owner of {HOARDED:,}", dict),
    ]


def _transfer(number: int) -> Body:
    place = {"network": NET, "owner": f"pod/{number + 20_000}", "address": _low(number + 20_001)}
    return {"op": "transfer", "to": f"new/{number}", **place}


def _editing() -> Sequence[Costly]:
    def subnet(number: int) -> Body:
        block = f"172.{16 + number // 8192}.{number // 32 % 256}.{number % 32 * 8}/29"
        return {"op": "subnet.add", "network": SPARE, "cidr": block}

    change = _group(lambda n: subnet(n) | {"op": "subnet.modify", "subnet": subnet(n)["cidr"], "description": "x"})
    network = _group(lambda n: {"op": "network.add", "network": f"new{n}", "space": "crowd"})
    reserve = _group(lambda n: {"op": "reserve", "network": NET, "range": f"10.220.{n >> 7}.{n % 128 * 2}"})
    paper = _group(lambda n: {"op": "write_paper", "kind": "note", "name": f"n{n}", "document": {"a": n}})
    return [
        Costly("try-subnets", "POST", ":rehearse", ADMIN, f"{MANY:,} subnet.add", _group(subnet)),
        Costly("add-subnets", "POST", ":apply", ADMIN, f"{MANY:,} subnet.add", _group(subnet)),
        Costly("change-subnets", "POST", ":apply", ADMIN, f"{MANY:,} subnet.modify", change),
        Costly("add-networks", "POST", ":apply", ADMIN, f"{MANY:,} network.add in one space", network),
        Costly("reserve", "POST", ":apply", ADMIN, f"{MANY:,} reserve", reserve),
        Costly("write-papers", "POST", ":apply", ADMIN, f"{MANY:,} write_paper", paper),
        Costly("verify", "POST", ":verify", ADMIN, "80,000 held, 200,000 entries", dict),
        Costly("sweep", "POST", ":sweep", ADMIN, "1,000 networks", dict),
        Costly("remove", "DELETE", f"/networks/{NET}?cascade=true", ADMIN, "a network with 80,000 held"),
    ]
