"""Small address plans, written as the edits that make them."""

from tenure.kernel.plan import edits
from tenure.kernel.plan.apply_edit import edited, new_network
from tenure.kernel.plan.invariants import judge
from tenure.kernel.plan.plan_model import Configuration, Network


def with_network(plan: Configuration, edit: edits.AddNetwork) -> Configuration:
    """Add a network under the next number."""
    number = len(plan.networks) + 1
    network = new_network(edit, number, f"uuid-{number}")
    return Configuration(plan.space, plan.name, plan.version, {**plan.networks, network.name: network})


def planned(*steps: edits.Edit, on: Configuration | None = None) -> Configuration:
    """Apply edits one after the other, then judge the final state."""
    plan = Configuration(1, "site") if on is None else on
    for step in steps:
        plan = with_network(plan, step) if isinstance(step, edits.AddNetwork) else edited(plan, step)
    judge(plan)
    return plan


def net1(*steps: edits.Edit) -> Configuration:
    """Plan the network most tests speak of: subnet1 192.0.2.0/24 with pool1 .10-.100, subnet2 10.0.0.0/24."""
    return planned(
        edits.AddNetwork(network="net1"),
        edits.AddSubnet(network="net1", cidr="192.0.2.0/24", gateway="192.0.2.1", name="subnet1", uuid="u1"),
        edits.AddSubnet(network="net1", cidr="10.0.0.0/24", name="subnet2", uuid="u2"),
        edits.AddPool(network="net1", range="192.0.2.10-192.0.2.100", name="pool1"),
        *steps,
    )


def pools(plan: Configuration, network: str = "net1") -> list[tuple[str | None, str]]:
    """List name and range of a network's pools in written order."""
    return [(pool.name, str(pool.range)) for _, pool in plan.network(network).pools()]


def reserved(plan: Configuration, subnet: str = "subnet1") -> list[tuple[str, str]]:
    """List range and reason of a subnet's reserved ranges."""
    return [(str(kept.range), kept.reason) for kept in network(plan).subnet(subnet).reserved]


def network(plan: Configuration) -> Network:
    """Return the network most tests speak of."""
    return plan.network("net1")
