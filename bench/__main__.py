"""``python -m bench``: measure, tell, and end with 1 if a bar is missed."""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.infrastructure.kube import left_out

from bench.cases import FILLS, MILLION, Case, Pair, Scale, burst_case, pairs_for, selected
from bench.claims_picture import PLACE as CLAIMS_PLACE
from bench.claims_picture import draw_claims, picture_lines
from bench.costly_measuring import Cost, costs_document, costs_table, measure_costly, too_long
from bench.costly_requests import Costly, requests
from bench.deployment_cases import deployment_pairs, is_deployment
from bench.deployment_measuring import measure_deployments
from bench.http_cases import http_pairs, is_http
from bench.http_measuring import measure_http
from bench.kubernetes_cases import CLAIMS, SWEEP, SWEPT, is_kubernetes, kubernetes_pairs
from bench.kubernetes_measuring import measure_kubernetes, measure_sweep
from bench.measuring import Bench, Measured, Progress, measure_pairs, median
from bench.neutron_cases import QUICK as NEUTRON_QUICK
from bench.neutron_cases import NeutronScale, is_neutron, needs_ledger, neutron_pairs
from bench.neutron_measuring import measure_neutron
from bench.neutron_places import databases
from bench.picture import PLACE, draw
from bench.places import Places
from bench.report import NOTES, all_hold, document, facts_lines, figures_table, machine, promises_table
from bench.vm_pool_picture import PLACE as VM_POOLS_PLACE
from bench.vm_pool_picture import draw_vm_pools

POLICIES = ("random", "lowest")
SWEEP_ROUNDS = 3
QUICK = {"rounds": 1, "seconds": 0.5, "held": 100_000, "claims": CLAIMS // 10}
USUAL = {"rounds": 5, "seconds": 2.0, "held": MILLION, "claims": CLAIMS}


def read_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Raw limits of the stores and the engine as shipped, measured in turn in one run.",
        epilog="TENURE_STORES=postgres,sqlite narrows the list of stores.",
    )
    parser.add_argument("--rounds", type=int, help="measurements of everything; medians are told (5)")
    parser.add_argument("--seconds", type=float, help="length of one measurement (2)")
    parser.add_argument("--held", type=int, help=f"holdings of a big ledger ({MILLION:,})")
    parser.add_argument("--claims", type=int, help=f"claims that operators on Kubernetes serve ({CLAIMS})")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="only pairs with this in their name"
    )
    parser.add_argument("--list", action="store_true", help="name the pairs and end")
    parser.add_argument("--quick", action="store_true", help="one short round, smaller ledgers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--no-bars", action="store_true", help="only measure: a missed bar is no failure")
    parser.add_argument(
        "--plot", nargs="?", type=Path, const=PLACE, metavar="FILE", help="measure rates over fill and draw them"
    )
    parser.add_argument(
        "--plot-claims", nargs="?", type=Path, const=CLAIMS_PLACE, metavar="FILE",
        help="measure claims a second over addresses held, ours and others', and draw them",
    )  # fmt: skip
    parser.add_argument(
        "--plot-vm-pools", nargs="?", type=Path, const=VM_POOLS_PLACE, metavar="FILE",
        help="draw what was measured of VM pools",
    )  # fmt: skip
    chosen = parser.parse_args(words)
    for name, value in (QUICK if chosen.quick else USUAL).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    if min(chosen.rounds, chosen.held, chosen.claims) < 1 or chosen.seconds <= 0:
        parser.error("rounds, seconds, held and claims must be positive")
    return chosen


def sweep(scale: Scale) -> list[Pair]:
    """List the pairs of the picture: every fill beside the raw limit."""
    raw = Case("postgres", "raw")
    cases = [burst_case(policy, percent, scale) for percent in FILLS for policy in POLICIES]
    return [
        Pair(f"fill-{case.policy}-{case.fill:.0%}", f"{case.policy}, {case.fill:.0%} full / raw", case, raw)
        for case in cases
    ]


def draw_sweep(measured: Sequence[Measured], place: Path) -> None:
    """Draw what the sweep measured."""
    rates = {
        policy: [median(each.subject, "rate") for each in measured if each.pair.subject.policy == policy]
        for policy in POLICIES
    }
    raws = [sample for each in measured for sample in each.base]
    draw(FILLS, rates, median(raws, "rate"), place)


def tell(facts: dict[str, Any], measured: Sequence[Measured]) -> None:
    """Print the tables."""
    tables = (figures_table(measured), NOTES, promises_table(measured)) if measured else ()
    for block in (facts_lines(facts), *tables):
        print("\n".join(block), end="\n\n")


def costly_requests(tiers: Mapping[str, str], words: Sequence[str]) -> dict[str, list[Costly]]:
    """List the costly requests that are measured, by the store of the server that is asked."""
    stores = [store for store in ("sqlite", "postgres") if store in tiers]
    return {
        store: [each for each in requests() if not words or any(word in costly_name(store, each) for word in words)]
        for store in stores
    }


def costly_name(store: str, request: Costly) -> str:
    """Name a costly request as ``--only`` takes it."""
    return f"costly-{store}-{request.name}"


def tell_costs(costs: Mapping[str, Sequence[Cost]]) -> None:
    """Print what costly requests cost, and which held up others."""
    for store, measured in costs.items():
        if measured:
            print("\n".join([f"{store}:", "", *costs_table(measured), "", *too_long(measured)]), end="\n\n")


async def plot_claims(chosen: argparse.Namespace, progress: Progress) -> None:
    """Measure what the picture of claims shows, print and draw it."""
    if left_out():
        raise SystemExit("the picture of claims needs Kubernetes")
    steps = [held // 10 for held in SWEEP] if chosen.quick else SWEEP
    points = await measure_sweep(SWEPT, steps, chosen.claims, progress)
    progress.close()
    print("\n".join(picture_lines(points)), end="\n\n")
    draw_claims(points, chosen.claims, machine()["cores"], chosen.plot_claims)


def all_pairs(places: Places, scale: Scale, *, quick: bool, claims: int) -> list[Pair]:
    """List everything that can be measured here."""
    small = NEUTRON_QUICK if quick else NeutronScale()
    neutrons = neutron_pairs(databases(places.tiers), places.tiers, small)
    deployments = deployment_pairs(places.tiers, quick=quick)
    clusters = [] if left_out() else kubernetes_pairs(quick=quick, claims=claims)
    return [*pairs_for(places.tiers, scale), *deployments, *http_pairs(places.tiers, scale), *neutrons, *clusters]


async def run(chosen: argparse.Namespace) -> bool:
    """Measure what was chosen; answer whether every bar holds."""
    scale = Scale(chosen.held, networks=2) if chosen.quick else Scale(chosen.held)
    async with Places() as places:
        pairs = selected(all_pairs(places, scale, quick=chosen.quick, claims=chosen.claims), chosen.only)
        dear = costly_requests(places.tiers, chosen.only)
        if chosen.list:
            print("\n".join(f"{pair.name:32}{pair.subject.store}: {pair.title}" for pair in pairs))
            names = [(store, each) for store, wanted in dear.items() for each in wanted]
            print("\n".join(f"{costly_name(store, each):32}{store}: {each.what}" for store, each in names))
            return True
        picture = sweep(replace(scale, networks=2)) if chosen.plot and "postgres" in places.tiers else []
        if not pairs and not picture and not chosen.plot_claims and not any(dear.values()):
            raise SystemExit("nothing to measure; --list names the pairs")
        facts = machine()
        if any(pair.subject.store == "postgres" or needs_ledger(pair) for pair in [*pairs, *picture]):
            facts["postgres"] = await places.postgres_facts()
        few = min(chosen.rounds, SWEEP_ROUNDS)
        steps = len(SWEPT) if chosen.plot_claims else 0
        progress = Progress(len(pairs) * chosen.rounds + len(picture) * few + sum(map(len, dear.values())) + steps)
        async with Bench(places, chosen.seconds) as bench:
            others = (is_neutron, is_http, is_deployment, is_kubernetes)
            ours = [pair for pair in pairs if not any(is_other(pair) for is_other in others)]
            measured = await measure_pairs(bench, ours, chosen.rounds, progress)
            swept = await measure_pairs(bench, picture, few, progress)
        plans = [pair for pair in pairs if is_deployment(pair)]
        measured += await measure_deployments(places, plans, chosen.rounds, progress)
        https = [pair for pair in pairs if is_http(pair)]
        measured += await measure_http(places, https, chosen.rounds, chosen.seconds, progress)
        costs = {store: await measure_costly(places, store, wanted, progress) for store, wanted in dear.items()}
        neutrons = [pair for pair in pairs if is_neutron(pair)]
        measured += await measure_neutron(places, neutrons, chosen.rounds, progress)
        clusters = [pair for pair in pairs if is_kubernetes(pair)]
        measured += await measure_kubernetes(clusters, chosen.rounds, progress)
        progress.close()
    if chosen.plot_claims:
        await plot_claims(chosen, progress)
    tell(facts, [*measured, *swept])
    tell_costs(costs)
    if swept:
        draw_sweep(swept, chosen.plot)
    if chosen.plot_vm_pools:
        nodes = max((each.pair.subject.servers for each in measured), default=0)
        draw_vm_pools(measured, nodes, facts["cores"], chosen.plot_vm_pools)
    if chosen.json:
        settings = {name: getattr(chosen, name) for name in ("rounds", "seconds", "held", "claims", "quick")}
        dearest = {store: costs_document(each) for store, each in costs.items() if each}
        text = json.dumps(document(facts, settings, [*measured, *swept]) | {"costs": dearest}, indent=1)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    return all_hold(measured) and not any(too_long(each) for each in costs.values())


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    chosen = read_arguments(words)
    held = asyncio.run(run(chosen))
    return 0 if held or chosen.no_bars else 1


if __name__ == "__main__":
    sys.exit(main())
