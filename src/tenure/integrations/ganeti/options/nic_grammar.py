"""What ``--net`` says: NICs to add, change and remove, each with several addresses.

``ip`` is the old word for ``ip0``, ``bridge`` that for ``link``. Whether an index or a name has a NIC, and whether
the indices of changed addresses leave a gap, is judged against the instance.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tenure.integrations.ganeti.options.lexer import (
    KEYWORDS,
    VERBS,
    OptionPiece,
    lex,
    like_an_address,
    name_fault,
    normal_uuid,
    read_literal,
    read_name,
    reference_fault,
    whole,
)
from tenure.integrations.ganeti.options.network_grammar import if_said, read_mode, wire_or_none
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tenure.kernel.plan.edits import KEEP, Keep

MAX_INDEX = 4095
LAST = "-1"
"""Stands for the last NIC, and in an addition for the place after it."""

WORDS = ("network", "mac", "name", "mode", "link", "vlan", "bridge")

_INDEX = re.compile(r"0|[1-9][0-9]*")
_IP_KEY = re.compile(r"ip(0|[1-9][0-9]*)?")
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")


@dataclass(frozen=True, slots=True)
class NicWish:
    """What is said of a NIC. ``ips`` has, by index, an address, "pool", "none", "auto" or the name of a pool.

    Of the others, KEEP was not said, and None was said as "none".
    """

    ips: Mapping[int, str] = field(default_factory=dict)
    network: str | Keep | None = KEEP
    mac: str | Keep | None = KEEP
    name: str | Keep | None = KEEP
    mode: str | Keep | None = KEEP
    link: str | Keep | None = KEEP
    vlan: str | Keep | None = KEEP
    bridge: str | Keep | None = KEEP


@dataclass(frozen=True, slots=True)
class NicAdd:
    """Add a NIC at an index, or after the last."""

    index: int | None
    wish: NicWish


@dataclass(frozen=True, slots=True)
class NicModify:
    """Change a NIC found by index ("-1" is the last), name or uuid."""

    nic: str
    changes: NicWish


@dataclass(frozen=True, slots=True)
class NicRemove:
    """Remove a NIC found by index ("-1" is the last), name or uuid."""

    nic: str


NicOption = NicAdd | NicModify | NicRemove


def read_net_add(text: str) -> NicAdd:
    """Read one ``--net`` of a new instance: an index from 0 and what the NIC has."""
    option = whole("--net", text)
    ident, _, rest = text.partition(":")
    if not _INDEX.fullmatch(ident):
        raise option.refusal(f"{shown(ident)} is not the index of a NIC; write 0:KEY=VALUE,…, counting from 0")
    return NicAdd(_index(ident, option), _new(lex("--net", rest)))


def read_net_modify(text: str) -> NicOption:
    """Read one ``--net`` of a change of an instance."""
    option = whole("--net", text)
    ident, _, rest = text.partition(":")
    if ident == "add":
        return NicAdd(None, _new(lex("--net", rest)))
    if text == "remove":
        return NicRemove(LAST)
    if ident in VERBS:
        raise option.refusal(f"say which NIC first: NIC:{ident}")
    nic, said = _nic(ident, option), lex("--net", rest)
    verb = _verb(said)
    if verb == "add":
        return NicAdd(_place(nic, option), _new(said))
    if not said and verb != "remove":
        raise option.refusal("nothing to modify: write NIC:KEY=VALUE, NIC:remove or NIC:add,KEY=VALUE")
    if verb == "remove" and said:
        raise option.refusal("nothing may follow remove")
    return NicRemove(nic) if verb == "remove" else NicModify(nic, _wish(said))


def _verb(said: dict[str, OptionPiece]) -> str | None:
    """Take the verb off the front, if there is one."""
    first = next(iter(said.values()), None)
    if first is None or first.value is not True or first.key not in VERBS:
        return None
    return said.pop(first.key).key


def _nic(ident: str, option: OptionPiece) -> str:
    if ident == LAST or normal_uuid(ident):
        return ident.lower()
    if _INDEX.fullmatch(ident):
        return str(_index(ident, option))
    fault = reference_fault(ident) or _nic_name_fault(ident)
    if fault:
        raise option.refusal(f"{shown(ident)} names no NIC ({fault}); write an index from 0, -1, a name or a uuid")
    return ident


def _place(nic: str, option: OptionPiece) -> int | None:
    if nic == LAST:
        return None
    if not _INDEX.fullmatch(nic):
        raise option.refusal(f"a NIC is added at an index, or at -1 after the last, not at {shown(nic)}")
    return int(nic)


def _index(digits: str, piece: OptionPiece) -> int:
    if len(digits) > len(str(MAX_INDEX)) or int(digits) > MAX_INDEX:
        raise piece.refusal(f"the index is too high; the highest is {MAX_INDEX}")
    return int(digits)


def _new(said: dict[str, OptionPiece]) -> NicWish:
    """Read what a new NIC has: its addresses are counted from 0 without a gap."""
    wish = _wish(said)
    missing = next((index for index in range(len(wish.ips)) if index not in wish.ips), None)
    if missing is not None:
        over = next(piece for piece in said.values() if piece.key == f"ip{max(wish.ips)}")
        raise over.refusal(f"a gap: ip{missing} is not given; addresses of a new NIC count from ip0")
    return wish


def _wish(said: dict[str, OptionPiece]) -> NicWish:
    for piece in said.values():
        if piece.key not in WORDS and not _IP_KEY.fullmatch(piece.key):
            raise _unknown(piece)
    for old, new in (("ip", "ip0"), ("bridge", "link")):
        if old in said and new in said:
            raise said[old].refusal(f"{old} and {new} are the same; give one of them")
    return NicWish(
        ips=_ips(said),
        network=if_said(said, "network", _network),
        mac=if_said(said, "mac", _mac),
        name=if_said(said, "name", _name),
        mode=if_said(said, "mode", lambda piece: None if piece.empties else read_mode(piece)),
        link=if_said(said, "link", wire_or_none),
        vlan=if_said(said, "vlan", wire_or_none),
        bridge=if_said(said, "bridge", wire_or_none),
    )


def _unknown(piece: OptionPiece) -> Invalid:
    reason = f"unknown parameter {shown(piece.key)}"
    if piece.key in VERBS:
        return piece.refusal(f"{reason}; a verb comes first, as in NIC:{piece.key}")
    if piece.value is True and name_fault(piece.key) is None and not piece.key.startswith("ip"):
        return piece.refusal(f"{reason}; did you mean network={piece.key[:80]}")
    return piece.refusal(f"{reason}; known are ip, ip0, ip1, …, {', '.join(WORDS)}")


def _ips(said: dict[str, OptionPiece]) -> dict[int, str]:
    found: dict[int, str] = {}
    for piece in said.values():
        match = _IP_KEY.fullmatch(piece.key)
        if match:
            index = _index(match[1] or "0", piece)
            found[index] = _ip(index, piece)
    return dict(sorted(found.items()))


def _ip(index: int, piece: OptionPiece) -> str:
    text = "none" if piece.empties else piece.said(f"{piece.key}=pool")
    word = text.lower()
    if word == "auto" and index > 0:
        raise piece.refusal("auto is for the first address only")
    if word in KEYWORDS:
        return word
    if like_an_address(text):
        return read_literal(text, piece)
    fault = reference_fault(text)
    if fault:
        raise piece.refusal(f"not an IP address, pool, none, auto or the name of a pool: {fault}")
    return text


def _network(piece: OptionPiece) -> str | None:
    if piece.empties:
        return None
    name = piece.said("network=NAME")
    fault = reference_fault(name)
    if fault:
        raise piece.refusal(f"a network is written by its name or uuid: {fault}")
    return normal_uuid(name) or name


def _mac(piece: OptionPiece) -> str:
    mac = piece.said("mac=auto").lower()
    if mac not in ("auto", "generate") and not _MAC.fullmatch(mac):
        raise piece.refusal("not a MAC address such as aa:00:00:12:34:56, nor auto, nor generate")
    return mac


def _name(piece: OptionPiece) -> str | None:
    if piece.empties:
        return None
    name = read_name(piece)
    fault = _nic_name_fault(name)
    if fault:
        raise piece.refusal(fault)
    return name


def _nic_name_fault(name: str) -> str | None:
    """Say why a name would be taken for something else in front of a colon."""
    if name.isdecimal():
        return "digits alone are an index, not a name"
    return "the name of a NIC does not begin with '-'" if name.startswith("-") else None
