"""From the options of one command to edits of one network, each tried on a copy before anything is sent.

The copy tells at once which option is wrong; the ledger judges again, under its locks, when the edits are applied.
"""

from collections.abc import Iterable
from uuid import uuid4

from tenure.integrations.ganeti.options.network_grammar import (
    PoolAdd,
    PoolModify,
    PoolRemove,
    SubnetAdd,
    SubnetModify,
    SubnetRemove,
    read_pool_option,
    read_ranges,
    read_subnet_option,
)
from tenure.integrations.ganeti.options.option_errors import blame, blamed
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, subtract_each
from tenure.kernel.errors import NotFound, Overlap, StillInUse, TenureError
from tenure.kernel.plan.apply_edit import edited
from tenure.kernel.plan.edits import (
    KEEP,
    AddPool,
    AddSubnet,
    Edit,
    Keep,
    ModifyPool,
    ModifySubnet,
    RemovePool,
    RemoveSubnet,
    Reserve,
    Unreserve,
)
from tenure.kernel.plan.invariants import judge
from tenure.kernel.plan.network_draft import NetworkDraft
from tenure.kernel.plan.plan_model import Configuration, KeepBack, Network, Subnet, usual_keep_back
from tenure.kernel.plan.side_effects import unreserved_already
from tenure.service.apply.cluster_rules import OWN_REASONS
from tenure.service.apply.operations import ExpectNoHoldings


class Design:
    """One network as a command will leave it: its edits, and warnings."""

    def __init__(self, network: Network) -> None:
        self.before = network
        self.edits: list[Edit] = []
        self.warnings: list[str] = []
        self.lifted: list[AddressRange] = []
        self._state = self._first = Configuration(0, network.name, networks={network.name: network})
        self._passed: list[tuple[str, str, Configuration]] = []

    @property
    def network(self) -> Network:
        """Return the network as it is by now."""
        [network] = self._state.networks.values()
        return network

    def edit(self, edit: Edit) -> None:
        """Try an edit on the copy, and keep it."""
        self._state = edited(self._state, edit)
        self.edits.append(edit)

    def passed(self, option: str, text: str) -> None:
        """Note how the network looks behind an option, to find the one at fault if the final state is refused."""
        self._passed.append((option, text, self._state))

    def judge(self) -> None:
        """Judge the final state; blame the first option behind which the fault was there."""
        try:
            judge(self._state, self._first)
        except TenureError as error:
            for option, text, state in self._passed:
                if _fault(state, self._first) == _known_by(error):
                    raise blame(error, option, text) from None
            raise

    def blamed(self, error: TenureError) -> TenureError:
        """Let a refusal of the ledger name the option that takes the ground from under an address that is in use."""
        address = getattr(error, "address", None)
        if isinstance(error, StillInUse) and error.addresses:
            address = error.addresses[0]
            # The ledger's hint offers retiring and cascade=True, which this command has no option for.
            error = StillInUse(error.kind, error.name, error.holders, hint="release them first")
        if not isinstance(address, str):
            return error
        for option, text, state in self._passed:
            [network] = state.networks.values()
            if _roles(network, address) != _roles(self.before, address):
                return blame(error, option, text)
        return error

    def expected(self) -> list[ExpectNoHoldings]:
        """Expect that no operation is under way where there was a pool and will be none."""
        before, after = ([pool.range for _, pool in network.pools()] for network in (self.before, self.network))
        # By ground, not by pool: ground that some pool covers in the end is not lost, whatever the options did between.
        lost = [piece for _, left in subtract_each(before, after) for piece in left]
        name = self.before.name
        return [ExpectNoHoldings(network=name, range=str(piece), state="pending") for piece in lost]

    def kept_for_nodes(self, after: Network) -> list[str]:
        """Warn of nodes' addresses that stay reserved in the network as it is now, although their range was lifted."""
        kept = [kept for subnet in after.subnets for kept in subnet.reserved if kept.reason.startswith(OWN_REASONS)]
        here = [each for each in kept if any(piece.overlaps(each.range) for piece in self.lifted)]
        return [
            f"--remove-reserved-ips: {each.range} stays reserved for {each.reason}; --no-conflicts-check lifts that"
            for each in here
        ]


def _roles(network: Network, address: str) -> tuple[bool, bool, bool]:
    """Tell what an address is to a network: in a subnet, in a pool, a gateway."""
    position = parse_address(address)
    return (
        any(position in subnet.cidr.range for subnet in network.subnets),
        any(position in pool.range for _, pool in network.pools()),
        any(position == subnet.gateway for subnet in network.subnets),
    )


def _fault(state: Configuration, before: Configuration) -> str | None:
    try:
        judge(state, before)
    except TenureError as error:
        return _known_by(error)
    return None


def _known_by(error: TenureError) -> str:
    """Return what an error is known by behind several options: a later one may mend a part of what overlaps."""
    return error.second if isinstance(error, Overlap) else error.message


def design_subnets(design: Design, options: Iterable[str]) -> None:
    """Do what ``--subnet`` says, option by option."""
    for text in options:
        with blamed("--subnet", text):
            option = read_subnet_option(text)
            match option:
                case SubnetAdd():
                    add_subnet(design, option)
                case SubnetModify():
                    modify_subnet(design, option)
                case SubnetRemove():
                    subnet = design.network.subnet(option.ident)
                    design.edit(RemoveSubnet(network=design.network.name, subnet=subnet.uuid))
        design.passed("--subnet", text)


def add_subnet(design: Design, option: SubnetAdd) -> None:
    """Add a block, and a pool over all of it where the option says so."""
    _warn(design, option.warning)
    name = design.network.name
    design.edit(
        AddSubnet(
            network=name,
            cidr=str(option.cidr),
            gateway=option.gateway,
            dhcp=option.dhcp,
            name=option.name,
            # Made here, not by the ledger: later edits name the subnet by it, on the copy and in the ledger.
            uuid=str(uuid4()),
        )
    )
    if option.pool:
        design.edit(AddPool(network=name, range=option.cidr.range))


def modify_subnet(design: Design, option: SubnetModify) -> None:
    """Change a block; the automatic marks follow it, unless somebody lifted one of them."""
    _warn(design, option.warning)
    subnet = design.network.subnet(option.ident)
    cidr = subnet.cidr if isinstance(option.cidr, Keep) else option.cidr
    usual = subnet.keep_back == usual_keep_back(subnet.cidr, subnet.unit)
    marks = sorted(usual_keep_back(cidr, subnet.unit)) if usual and cidr.prefix <= subnet.unit else KEEP
    design.edit(
        ModifySubnet(
            network=design.network.name,
            subnet=subnet.uuid,
            cidr=KEEP if cidr == subnet.cidr else str(cidr),
            gateway=option.gateway,
            dhcp=option.dhcp,
            name=option.name,
            keep_back=KEEP if cidr == subnet.cidr else marks,
        )
    )


def design_pools(design: Design, options: Iterable[str]) -> None:
    """Do what ``--pool`` says, option by option."""
    for text in options:
        with blamed("--pool", text):
            option = read_pool_option(text)
            name = design.network.name
            match option:
                case PoolAdd():
                    design.edit(AddPool(network=name, range=_pool_range(design, option), name=option.name))
                case PoolRemove():
                    _remove_pool(design, option)
                case PoolModify():
                    design.edit(ModifyPool(network=name, pool=option.pool, name=option.name))
        design.passed("--pool", text)


def _pool_range(design: Design, option: PoolAdd) -> AddressRange:
    if option.range is not None:
        return option.range
    assert option.subnet is not None
    return design.network.subnet(option.subnet).cidr.range


def _remove_pool(design: Design, option: PoolRemove) -> None:
    """Remove a pool by its name or exact range, or cut a range out of all pools that it touches."""
    hole, named = option.range, option.name
    if option.whole and not any(pool.range == hole for _, pool in design.network.pools()):
        exact = "no pool has exactly this range; `remove:RANGE` cuts pools"
        raise NotFound("pool", str(hole), network=design.network.name, hint=exact)
    design.edit(RemovePool(network=design.network.name, pool=str(hole) if hole is not None else named or ""))


def design_reserved(design: Design, adding: str | None, removing: str | None) -> None:
    """Do what ``--remove-reserved-ips`` and ``--add-reserved-ips`` say."""
    # Lifted before anything is reserved: a range that both options name is reserved in the end.
    if removing is not None:
        with blamed("--remove-reserved-ips", removing):
            holes = read_ranges(removing, "--remove-reserved-ips")
            # All of them, also behind one that lifts nothing: only a command that lifts nothing at all is refused.
            lifted = [_unreserve(design, hole) for hole in holes]
            if not any(lifted):
                raise NotFound("reserved range", removing, network=design.network.name)
        design.passed("--remove-reserved-ips", removing)
    if adding is not None:
        with blamed("--add-reserved-ips", adding):
            for wanted in read_ranges(adding, "--add-reserved-ips"):
                _reserve(design, wanted)
        design.passed("--add-reserved-ips", adding)


def _reserve(design: Design, wanted: AddressRange) -> None:
    """Reserve a range; where it lies over addresses of nodes the admin's word counts, and stays when they go."""
    name = design.network.name
    known = [kept for subnet in design.network.subnets for kept in subnet.reserved if kept.range.overlaps(wanted)]
    nodes = [kept.range for kept in known if kept.reason.startswith(OWN_REASONS) and wanted.covers(kept.range)]
    if len(known) > len(nodes):
        design.warnings.append(f"--add-reserved-ips: {wanted} is reserved in part or whole; it was merged")
    for node in nodes:
        design.edit(Unreserve(network=name, range=node))
    design.edit(Reserve(network=name, range=wanted))


def _unreserve(design: Design, hole: AddressRange) -> bool:
    """Lift reservations: the admin's, and the automatic marks but that of the gateway.

    Warns of what was not reserved; returns whether anything was.
    """
    name = design.network.name
    _, subnet = NetworkDraft(design.network).reserving(hole)
    _warn_of_unreserved(design, subnet, hole)
    marks = {why: position for position, why in subnet.kept_back() if position in hole}
    lifted = set(marks) - {KeepBack.GATEWAY}
    pieces = [hole]
    if KeepBack.GATEWAY in marks:
        gateway = marks[KeepBack.GATEWAY]
        text = format_address(gateway)
        design.warnings.append(f"--remove-reserved-ips: {text} is the gateway of {subnet.cidr} and stays reserved")
        pieces = hole.minus(AddressRange(gateway, gateway))
        # The gateway may be the first address of the block as well: then that mark has to stay, too.
        lifted -= {why for why in lifted if marks[why] == gateway}
    # Only what is reserved, so that the ledger has nothing to warn of again.
    touched = [
        AddressRange(max(kept.range.first, piece.first), min(kept.range.last, piece.last))
        for piece in pieces
        for kept in subnet.reserved
        if kept.range.overlaps(piece)
    ]
    for piece in touched:
        design.edit(Unreserve(network=name, range=piece))
        design.lifted.append(piece)
    if lifted:
        left = sorted(subnet.keep_back - lifted)
        design.edit(ModifySubnet(network=name, subnet=subnet.uuid, keep_back=left))
    return bool(touched or marks)


def _warn_of_unreserved(design: Design, subnet: Subnet, hole: AddressRange) -> None:
    """Warn of the parts of a range that a subnet does not reserve (X05)."""
    marks = [AddressRange(position, position) for position, _ in subnet.kept_back()]
    texts = unreserved_already(hole, [*(kept.range for kept in subnet.reserved), *marks])
    design.warnings.extend(f"--remove-reserved-ips: {text}" for text in texts)


def _warn(design: Design, warning: str | None) -> None:
    if warning is not None:
        design.warnings.append(warning)
