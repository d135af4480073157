"""What the options about networks say: ``--subnet``, ``--pool``, the reserved ranges, and ``-N`` of a connection.

Everything is read for its shape alone. Whether a subnet exists or a range fits is judged by the ledger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tenure.integrations.ganeti.machine_model import MODES
from tenure.integrations.ganeti.options.lexer import (
    OptionPiece,
    lex,
    like_an_address,
    name_fault,
    read_block,
    read_literal,
    read_name,
    read_range,
    read_reference,
    read_truth,
    reference_fault,
    refuse_unknown,
    split_verb,
    whole,
)
from tenure.kernel.addressing.ranges import AddressRange, Cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.names import MAX_NAME, shown
from tenure.kernel.plan.edits import KEEP, Keep

MAX_RANGES = 131_072
"""The longest list of ranges in characters: as much as one argument of a command can hold."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SubnetAdd:
    """Add a subnet; ``pool`` makes one pool of the whole of it."""

    cidr: Cidr
    gateway: str | None = None
    dhcp: bool = False
    name: str | None = None
    pool: bool = False
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class SubnetModify:
    """Change a subnet found by name, block or uuid."""

    ident: str
    cidr: Cidr | Keep = KEEP
    gateway: str | Keep | None = KEEP
    dhcp: bool | Keep = KEEP
    name: str | Keep | None = KEEP
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class SubnetRemove:
    """Remove a subnet found by name, block or uuid."""

    ident: str


@dataclass(frozen=True, slots=True)
class PoolAdd:
    """Make a pool of a range, or of a whole subnet: one of the two is given."""

    range: AddressRange | None = None
    subnet: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class PoolRemove:
    """Remove all ranges of a name, or a range: cut from what it touches, or equal to one pool if ``whole``."""

    range: AddressRange | None = None
    name: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class PoolModify:
    """Give another name, or none, to a pool found by name or by its exact range."""

    pool: str
    name: str | None


SubnetOption = SubnetAdd | SubnetModify | SubnetRemove
PoolOption = PoolAdd | PoolRemove | PoolModify


def read_subnet_option(text: str) -> SubnetOption:
    """Read one ``--subnet``."""
    option = whole("--subnet", text)
    if text.startswith("add:"):
        return _subnet_add(option, lex("--subnet", text.removeprefix("add:")))
    if text == "remove" or text.startswith("remove:"):
        raise option.refusal("say which subnet, and the verb last: IDENT:remove")
    ident, verb, rest = split_verb(option)
    subnet = read_reference(ident, option)
    return SubnetRemove(subnet) if verb == "remove" else _subnet_modify(option, subnet, lex("--subnet", rest))


def read_pool_option(text: str) -> PoolOption:
    """Read one ``--pool``."""
    option = whole("--pool", text)
    if text.startswith("add:"):
        return _pool_add(option, lex("--pool", text.removeprefix("add:")))
    if text == "remove" or text.startswith("remove:"):
        return _pool_cut(option, text.removeprefix("remove").removeprefix(":"))
    ident, verb, rest = split_verb(option)
    pool = read_range(ident, option) if like_an_address(ident) else read_reference(ident, option)
    if verb == "modify":
        return _pool_modify(option, str(pool), lex("--pool", rest))
    return PoolRemove(name=pool) if isinstance(pool, str) else PoolRemove(range=pool, whole=True)


def read_ranges(text: str, option: str = "--add-reserved-ips") -> list[AddressRange]:
    """Read a list of ranges between commas, as the options for reserved addresses take it."""
    # Lists come from files and here-documents: white space and line breaks around a piece do no harm.
    line = whole(option, " ".join(text.split()), at_most=MAX_RANGES)
    pieces = [OptionPiece(option, part.strip(), part, True) for part in line.text.removeprefix("=").split(",")]
    if not all(piece.text for piece in pieces):
        raise line.refusal("an empty piece: a comma too many, or no range at all")
    return [read_range(piece.text, piece) for piece in pieces]


def read_connection_option(text: str) -> dict[str, str]:
    """Read ``-N``: those of mode, link and vlan that are said."""
    whole("-N", text)
    said = lex("-N", text)
    refuse_unknown(said.values(), ("mode", "link", "vlan"))
    return {key: read_mode(piece) if key == "mode" else wire_or_none(piece) or "" for key, piece in said.items()}


def read_cidr(text: str, option: str = "--network") -> tuple[Cidr, str | None]:
    """Read a block, and a warning if it was written with host bits."""
    return read_block(text, whole(option, text))


def read_address(text: str, option: str = "--gateway") -> str:
    """Read one address, and write it as everybody does."""
    return read_literal(text, whole(option, text))


def check_door_name(text: str, field: str) -> str:
    """Return a name that the option grammar can tell from everything else, or say what is wrong with it."""
    fault = name_fault(text)
    if fault:
        raise Invalid(f"{field}: {shown(text)}: {fault}", field=field)
    return text


def name_or_none(piece: OptionPiece) -> str | None:
    """Read a new name, or none."""
    return None if piece.empties else read_name(piece)


def read_mode(piece: OptionPiece) -> str:
    """Read the mode in which a NIC is connected."""
    mode = piece.said("mode=bridged")
    if mode not in MODES:
        raise piece.refusal(f"unknown mode; there are {', '.join(MODES)}")
    return mode


def read_wire(piece: OptionPiece) -> str:
    """Read a link or a vlan: any short word."""
    word = piece.said("vlan=.10" if piece.key == "vlan" else f"{piece.key}=br0")
    if len(word) > MAX_NAME or any(letter.isspace() for letter in word):
        raise piece.refusal(f"one word of at most {MAX_NAME} characters is needed")
    return word


def wire_or_none(piece: OptionPiece) -> str | None:
    """Read a link or a vlan, or none."""
    return None if piece.empties else read_wire(piece)


def if_said(said: dict[str, OptionPiece], key: str, read: Callable[[OptionPiece], _T]) -> _T | Keep:
    """Read a key if it is there; what is not said is kept."""
    return read(said[key]) if key in said else KEEP


def _subnet_add(option: OptionPiece, said: dict[str, OptionPiece]) -> SubnetAdd:
    refuse_unknown(said.values(), ("cidr", "gateway", "dhcp", "name", "pool"))
    if "cidr" not in said:
        raise option.refusal("cidr is missing: a subnet needs cidr=ADDRESS/LENGTH")
    cidr, warning = _cidr(said["cidr"])
    return SubnetAdd(
        cidr,
        gateway=_gateway(said["gateway"]) if "gateway" in said else None,
        dhcp="dhcp" in said and read_truth(said["dhcp"]),
        name=read_name(said["name"]) if "name" in said else None,
        pool="pool" in said and _flag(said["pool"]),
        warning=warning,
    )


def _subnet_modify(option: OptionPiece, subnet: str, said: dict[str, OptionPiece]) -> SubnetModify:
    hint = "a pool is added with --pool add:subnet=IDENT" if "pool" in said else ""
    refuse_unknown(said.values(), ("cidr", "gateway", "dhcp", "name"), hint)
    if not said:
        raise option.refusal("nothing to modify: write IDENT:modify,KEY=VALUE")
    cidr, warning = _cidr(said["cidr"]) if "cidr" in said else (KEEP, None)
    gateway = if_said(said, "gateway", lambda piece: None if piece.empties else _gateway(piece))
    dhcp, name = if_said(said, "dhcp", read_truth), if_said(said, "name", name_or_none)
    return SubnetModify(subnet, cidr, gateway, dhcp, name, warning)


def _pool_add(option: OptionPiece, said: dict[str, OptionPiece]) -> PoolAdd:
    ranges = [piece for piece in said.values() if _is_bare(piece)]
    others = (piece for piece in said.values() if not _is_bare(piece))
    refuse_unknown(others, ("subnet", "name"), "a range is written first-last")
    if len(ranges) > 1:
        raise ranges[1].refusal("one range to an option; repeat --pool for more")
    if bool(ranges) == ("subnet" in said):
        raise option.refusal("one range is needed, or subnet=IDENT" + (", not both" if ranges else ""))
    return PoolAdd(
        range=read_range(ranges[0].text, ranges[0]) if ranges else None,
        subnet=None if ranges else read_reference(said["subnet"].said("subnet=IDENT"), said["subnet"]),
        name=read_name(said["name"]) if "name" in said else None,
    )


def _is_bare(piece: OptionPiece) -> bool:
    return piece.value is True and piece.key not in ("subnet", "name")


def _pool_cut(option: OptionPiece, text: str) -> PoolRemove:
    if not text:
        raise option.refusal("say what to remove: remove:RANGE or POOL:remove")
    if "," in text:
        raise option.refusal("one range to an option; repeat --pool for more")
    if reference_fault(text) is None:
        raise option.refusal(f"remove: takes a range; a pool is removed by name with {text[:40]}:remove")
    return PoolRemove(range=read_range(text, option))


def _pool_modify(option: OptionPiece, pool: str, said: dict[str, OptionPiece]) -> PoolModify:
    refuse_unknown(said.values(), ("name",))
    if "name" not in said:
        raise option.refusal("nothing to modify: write POOL:modify,name=NAME")
    return PoolModify(pool, name_or_none(said["name"]))


def _cidr(piece: OptionPiece) -> tuple[Cidr, str | None]:
    return read_block(piece.said("cidr=192.0.2.0/24"), piece)


def _gateway(piece: OptionPiece) -> str:
    return read_literal(piece.said("gateway=192.0.2.1"), piece)


def _flag(piece: OptionPiece) -> bool:
    if isinstance(piece.value, str):
        raise piece.refusal(f"{piece.key} takes no value; name a pool with --pool add:subnet=IDENT,name=NAME")
    return piece.value is True
