"""Which of a group's networks its instances go by for DNS, as gateway, and for their own address."""

from collections.abc import Mapping, Sequence

from tenure.integrations.bosh.documents.reading_context import Standing
from tenure.integrations.bosh.documents.yaml_tree import Faults, Reader, Tree
from tenure.integrations.bosh.model.bosh_errors import Kind, Place
from tenure.integrations.bosh.model.document_model import ADDRESSABLE, DNS, GATEWAY

REQUIRED = (DNS, GATEWAY)
VALID = (*REQUIRED, ADDRESSABLE)

Claims = Mapping[str, frozenset[str]]
"""By network, in the order of the group, what it is the default for."""


def read_defaults(entry: Tree, group: Standing, reader: Reader) -> frozenset[str]:
    """Read what a network of a group is the default for."""
    found = set()
    for said in reader.each(entry, "default", str):
        if said.value in VALID:
            found.add(said.value)
            continue
        told = f"specified an invalid default network property '{said.value}', valid properties are: "
        whole = f"Instance group '{group.name}' {told}{', '.join(REQUIRED)}"
        reader.faults.add(Kind.JOB_NETWORK_INVALID_DEFAULT, whole, said.place)
    return frozenset(found)


def judge_defaults(claims: Claims, group: Standing, place: Place, faults: Faults) -> None:
    """Refuse defaults that two networks claim, and among several networks those that none does."""
    _refuse_several({prop: _claimants(claims, prop) for prop in VALID}, group, place, faults)
    missing = [prop for prop in REQUIRED if not _claimants(claims, prop)]
    if missing and len(claims) > 1:
        told = f"must specify which network is default for {', '.join(missing)}"
        whole = f"Instance group '{group.name}' {told}, since it has more than one network configured"
        faults.add(Kind.JOB_NETWORK_MISSING_DEFAULT, whole, place)


def _claimants(claims: Claims, prop: str) -> list[str]:
    return [name for name, props in claims.items() if prop in props]


def _refuse_several(claimed: Mapping[str, Sequence[str]], group: Standing, place: Place, faults: Faults) -> None:
    several = {prop: ", ".join(f"'{name}'" for name in names) for prop, names in claimed.items() if len(names) > 1}
    if several:
        told = " ".join(f"'{prop}' has default networks: {names}." for prop, names in several.items())
        whole = f"Instance group '{group.name}' specified more than one network to contain default. {told}"
        faults.add(Kind.JOB_NETWORK_MULTIPLE_DEFAULTS, whole, place)
