"""``tenure render metal3``: metadata and network data of a machine, from its template."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.doors.cli.commands.export import output_option
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.atomic_files import write_whole
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.kubernetes.metal3_data.offline.filed_pools import FiledPools
    from tenure.integrations.kubernetes.metal3_data.offline.pool_choices import LedgerNetwork, PoolChoice
    from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress
    from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddress
    from tenure.integrations.kubernetes.metal3_data.template.render_data import RenderedData

    Claims = dict[str, NeededAddress]

PARTS = {"metadata": "metaData", "networkdata": "networkData"}


@command("metal3")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
)
@click.option("--machine", "metal3_machine", required=True, metavar="NAME", help="The Metal3Machine to render for.")
@click.option("--template", metavar="NAME", help="Which template, where the files have several.")
@click.option(
    "--index",
    type=click.IntRange(0),
    metavar="N",
    help="Its number [default: that of its Metal3Data, else the lowest that no other has].",
)
@click.option("--host", metavar="NAME", help="Its BareMetalHost [default: what the files say, else --machine].")
@click.option("--capi-machine", metavar="NAME", help="Its Machine [default: what the files say, else --machine].")
@click.option(
    "--pool",
    "pools",
    metavar="NAME=ADDRESS/PREFIX",
    multiple=True,
    help="Its address from a pool, also with ,gateway=ADDRESS ,dns=ADDRESS; or NAME=ledger:NETWORK. Repeat for more.",
)
@click.option("--owner", metavar="OWNER", help="Who holds its addresses in the ledger [default: metal3machine/NAME].")
@click.option("--claims-by-host", is_flag=True, help="Its claims are named by the host (see preAllocations).")
@click.option("--like-capm3", is_flag=True, help="Leave out what CAPM3 does not render: dnsServersFromIPPool.")
@click.option("--only", type=click.Choice(list(PARTS)), help="Only this part.")
@output_option
@pass_session
def metal3(
    session: Session,
    files: Sequence[Path],
    metal3_machine: str,
    template: str | None,
    index: int | None,
    host: str | None,
    capi_machine: str | None,
    pools: Sequence[str],
    owner: str | None,
    claims_by_host: bool,
    like_capm3: bool,
    only: str | None,
    output: Path | None,
) -> None:
    """Write the metadata and network data that a machine gets by a Metal3DataTemplate.

    The files have the template, and what else is known: pools, addresses, the machine and its host. A file may be -
    for standard input. An address that neither they nor --pool give is the one that its pool would give next. Nothing
    is changed anywhere.

    For example:
      tenure render metal3 template.yaml --machine node-1 --host rack3-u12 --pool pool-1=192.168.0.11/24
    """
    try:
        from tenure.integrations.kubernetes.metal3_data.offline.filed_machine import (
            MachineNames,
            facts_of,
            namespace_of,
        )
        from tenure.integrations.kubernetes.metal3_data.offline.filed_pools import FiledPools
        from tenure.integrations.kubernetes.metal3_data.offline.object_files import read_objects
        from tenure.integrations.kubernetes.metal3_data.offline.pool_choices import read_choices
        from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddresses
        from tenure.integrations.kubernetes.metal3_data.template.read_template import check_cluster, read_template
        from tenure.integrations.kubernetes.metal3_data.template.render_data import RenderRules, render_data
        from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise Invalid(f"render metal3: {error.name} is missing: {how_to_install('kubernetes')}") from None
    names = MachineNames(metal3_machine, capi_machine, host, index)
    everything = read_objects(files)
    read, translated = read_template(everything.template(template))
    namespace = namespace_of(everything, read.namespace, metal3_machine)
    objects = everything.within(namespace)
    facts, notes, cluster = facts_of(objects, names, read.name, namespace)
    check_cluster(read, cluster)
    filed = FiledPools(objects)
    own = f"{read.name}-{facts.index}", facts.objects[ObjectSort.HOST].name
    claims = _claims(NeededAddresses(read, facts), *own, filed, by_host=claims_by_host)
    addresses = _addresses(session, claims, read_choices(pools), filed, owner or f"metal3machine/{metal3_machine}")
    rendered = render_data(read, facts, addresses, RenderRules(dns_in_meta_data=not like_capm3))
    _tell(session, rendered, only, output, [*translated, *objects.notes, *notes, *filed.notes], {
        name: addresses[needed].address for name, needed in claims.items()
    })  # fmt: skip


def _claims(needed: "Iterable[NeededAddress]", data: str, host: str, filed: "FiledPools", *, by_host: bool) -> "Claims":
    """Return the addresses that the machine needs, each by the name of its claim."""
    from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import check_claim_names, claim_names

    names = {each: claim_names(each, data, host, by_host=by_host) for each in needed}
    check_claim_names({name: each for each, both in names.items() for name in both})
    return {filed.claim_of(each, both, data): each for each, both in names.items()}


def _addresses(
    session: Session, claims: "Claims", choices: "dict[str, PoolChoice]", filed: "FiledPools", owner: str
) -> "dict[NeededAddress, PoolAddress]":
    """Return the address of each claim, from where the user says, else from the files."""
    from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress

    known = {each.suffix for each in claims.values()}
    if unknown := [name for name in choices if name not in known]:
        raise Invalid(f"--pool: the template needs no address of {unknown[0]!r}; it needs: {', '.join(sorted(known))}")
    found: dict[NeededAddress, PoolAddress] = {}
    for name, needed in claims.items():
        choice = choices.get(needed.suffix)
        if choice is None:
            continue
        slot = "" if needed.number == 1 else str(needed.number)
        found[needed] = choice if isinstance(choice, PoolAddress) else _held(session, choice, owner, slot)
        filed.keep(needed, name, found[needed].address)
    # The rest is picked when it is known what is not free any more.
    return found | {each: filed.address_for(each, name) for name, each in claims.items() if each not in found}


def _held(session: Session, network: "LedgerNetwork", owner: str, slot: str) -> "PoolAddress":
    from tenure.integrations.kubernetes.metal3_data.offline.pool_choices import address_in_ledger

    return session.run(lambda ledger: address_in_ledger(ledger, network.name, owner, slot))


def _tell(
    session: Session,
    rendered: "RenderedData",
    only: str | None,
    output: Path | None,
    notes: Sequence[str],
    claims: dict[str, str],
) -> None:
    """Print the documents, or write them into a file; what was translated stands on standard error."""
    from tenure.integrations.kubernetes.metal3_data.template.data_yaml import data_yaml

    both = {"metadata": rendered.meta_data, "networkdata": rendered.network_data}
    parts = {name: each for name, each in both.items() if each is not None and only in (None, name)}
    if not parts:
        raise Invalid(f"--only: the template has no {PARTS[only]}" if only else "template: it has nothing to render")
    text = _text(parts, data_yaml)
    document = {"claims": claims, "notes": list(notes)}
    if output is None:
        answer(session, {**{PARTS[name]: each for name, each in parts.items()}, **document}, text.rstrip("\n"))
    else:
        write_whole(output, text)
        answer(session, {"file": str(output), **document}, f"wrote {output}")
    for note in [] if session.json else notes:
        click.echo(f"note: {note}", err=True)


def _text(parts: Mapping[str, object], write: "Callable[[object], str]") -> str:
    """Write one part as it is, and several as documents of one stream, each with its name before it."""
    if len(parts) == 1:
        return "".join(write(each) for each in parts.values())
    pieces: Iterable[str] = (f"# {PARTS[name]}\n{write(each)}" for name, each in parts.items())
    return "---\n".join(pieces)
