"""What VMs said, held against the instances they are of: who answered, and who did not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.cloud_config.ledger_networks import SPACE
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, Refused, Rejected
from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.integrations.bosh.state.instance_state import DeploymentInstance


@dataclass(frozen=True, slots=True)
class Hearing:
    """What VMs said, None if they were not asked, and whether those that did not answer are to be made anew."""

    state: Mapping[str, VmState] | None = None
    fix: bool = False
    space: str = SPACE


@dataclass(frozen=True, slots=True)
class Heard:
    """Who answered, by the uuid of the instance, and whose VM is as good as lost."""

    answers: Mapping[str, VmState]
    lost: frozenset[str]


def listen(instances: Sequence[DeploymentInstance], hearing: Hearing, *, everybody: bool) -> Heard:
    """Match what VMs said with their instances; ``everybody`` who has a VM must have said something.

    A VM that did not answer is a refusal; it is lost where it is to be fixed. Else ignored instances are left alone.
    """
    said = _matched(instances, hearing.state or {})
    asked = [each for each in instances if each.vm is not None and (everybody or not each.ignored)]
    silent = [each for each in asked if _is_silent(said.get(each.uuid), everybody)]
    if silent and not hearing.fix:
        names = ", ".join(f"'{each.long_name}'" for each in silent)
        what = "were not asked" if hearing.state is None else "did not answer"
        raise Refused(
            BoshErrorKind.GENERIC,
            f"The VMs of these instances {what}: {names}. Only a deploy that fixes them makes them anew.",
        )
    answers = {uuid: each for uuid, each in said.items() if each.vm is not None}
    return Heard(answers, frozenset(each.uuid for each in silent))


def _is_silent(said: VmState | None, everybody: bool) -> bool:
    return everybody if said is None else said.vm is None


def _matched(instances: Sequence[DeploymentInstance], state: Mapping[str, VmState]) -> dict[str, VmState]:
    """Return what was said by uuid; what is of no instance, of one twice, or of another's VM is a fault."""
    names = {f"{each.group}/{which}": each for each in instances for which in (each.uuid, each.index)}
    found: dict[str, VmState] = {}
    faults: list[BoshFault] = []
    for ident, said in state.items():
        known = names.get(ident)
        if known is not None and known.uuid not in found:
            found[known.uuid] = said
            continue
        told = f"There is no instance '{ident}'" if known is None else f"Instance '{known.name}' is told of twice"
        faults.append(BoshFault(BoshErrorKind.GENERIC, told, said.place))
    # Only what counts for an instance: an instance that is named twice is an error of its own.
    faults += _shared({who: said for who, said in state.items() if who in names and found[names[who].uuid] is said})
    if faults:
        raise Rejected(faults)
    return found


def _shared(state: Mapping[str, VmState]) -> list[BoshFault]:
    """Return a fault for every VM that is told of once more: a VM is one instance's, and carries only what that has."""
    first: dict[str, str] = {}
    faults: list[BoshFault] = []
    for ident, said in state.items():
        if said.vm is not None and first.setdefault(said.vm, ident) != ident:
            told = f"VM '{said.vm}' is told of as that of '{first[said.vm]}' and of '{ident}': a VM is one instance's"
            faults.append(BoshFault(BoshErrorKind.GENERIC, told, said.place))
    return faults
