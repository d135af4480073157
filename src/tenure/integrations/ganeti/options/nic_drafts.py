"""The NICs of an instance while ``--net`` options are read: what each was, and all that is said of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tenure.integrations.ganeti.machine_model import Nic
from tenure.integrations.ganeti.options.nic_grammar import (
    LAST,
    NicAdd,
    NicModify,
    NicWish,
    read_net_add,
    read_net_modify,
)
from tenure.integrations.ganeti.options.option_errors import blamed
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.plan.edits import Keep


@dataclass(slots=True)
class NicDraft:
    """A NIC as it was (None for a new one), what is said of it, and the option that says so."""

    before: Nic | None
    wish: NicWish = field(default_factory=NicWish)
    option: str = ""


def drafts_of_new(options: Sequence[str]) -> list[NicDraft]:
    """Read the NICs of a new instance; their indices are 0, 1, … in any order."""
    drafts: dict[int, NicDraft] = {}
    for text in options:
        with blamed("--net", text):
            read = read_net_add(text)
            index = len(drafts) if read.index is None else read.index
            if index in drafts:
                raise Invalid(f"NIC {index} is given twice")
            drafts[index] = NicDraft(None, read.wish, text)
    # Only now: indices may come in any order, so a gap is known when all options are read.
    for index, draft in drafts.items():
        with blamed("--net", draft.option):
            if index >= len(drafts):
                raise Invalid(f"NIC {index} leaves a gap; NICs are numbered from 0 without gaps")
    return [drafts[index] for index in sorted(drafts)]


def drafts_of_change(nics: Sequence[Nic], options: Sequence[str]) -> list[NicDraft]:
    """Read changes of an instance's NICs, in order: each option finds the NICs as the ones before it left them.

    Indices of addresses are those that a NIC had before the command, whatever the other options do to it.
    """
    drafts = [NicDraft(nic) for nic in nics]
    for text in options:
        with blamed("--net", text):
            read = read_net_modify(text)
            if isinstance(read, NicAdd):
                place = len(drafts) if read.index is None else read.index
                if place > len(drafts):
                    raise Invalid(f"NIC {place} would leave a gap; the instance has {len(drafts)} NICs")
                drafts.insert(place, NicDraft(None, read.wish, text))
            else:
                place = _find(drafts, read.nic)
                if isinstance(read, NicModify):
                    drafts[place].wish = _merged(drafts[place].wish, read.changes)
                    drafts[place].option = text
                else:
                    del drafts[place]
    return drafts


def _find(drafts: Sequence[NicDraft], ident: str) -> int:
    """Find a NIC by index, name or uuid."""
    if ident == LAST and drafts:
        return len(drafts) - 1
    if ident.isdecimal() and int(ident) < len(drafts):
        return int(ident)
    for place, draft in enumerate(drafts):
        known = (draft.before.name, draft.before.uuid) if draft.before is not None else (draft.wish.name,)
        if ident in known:
            return place
    raise NotFound("NIC", ident, hint=f"the instance has {len(drafts)}")


def _merged(first: NicWish, second: NicWish) -> NicWish:
    """Put together what two options say of one NIC."""
    twice = sorted(first.ips.keys() & second.ips.keys())
    if twice:
        raise Invalid(f"ip{twice[0]} of this NIC is given twice in one command")
    said: dict[str, Any] = {"ips": {**first.ips, **second.ips}}
    for word in fields(NicWish):
        value = getattr(second, word.name)
        if word.name != "ips" and not isinstance(value, Keep):
            said[word.name] = value
    return replace(first, **said)
