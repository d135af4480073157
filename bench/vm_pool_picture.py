"""The picture for the docs: allocations a second in each mode of VM pools, beside Go's algorithm and the limit."""

from collections.abc import Sequence
from pathlib import Path

from bench.crew import Sample
from bench.kubernetes_cases import (
    VM_POOL_CREATES,
    VM_POOL_GO,
    VM_POOL_LEDGER,
    VM_POOL_OURS,
    VM_POOL_PER_IP,
    VM_POOL_SHARDS,
)
from bench.measuring import Measured, median

PLACE = Path(__file__).parents[1] / "docs" / "pictures" / "vm-pool-modes.svg"
BARS = {
    VM_POOL_GO: ("Go managers of the seed's time", "#d4731c"),
    VM_POOL_OURS: ("configmap", "#1f6feb"),
    VM_POOL_SHARDS: ("shards (8)", "#1f6feb"),
    VM_POOL_PER_IP: ("per-ip", "#1f6feb"),
    VM_POOL_LEDGER: ("ledger, behind a server", "#1f6feb"),
    VM_POOL_CREATES: ("objects created a second", "#8c959f"),
}


def samples_of(measured: Sequence[Measured], work: str) -> list[Sample]:
    """Return all measurements of a piece of work by several callers in a row, as subject or as base."""
    found: list[Sample] = []
    for each in measured:
        if each.pair.subject.work == work and each.pair.subject.count != 1:
            found += each.subject
        if each.pair.base is not None and each.pair.base.work == work and each.pair.base.count != 1:
            found += each.base
    return found


def draw_vm_pools(measured: Sequence[Measured], nodes: int, cores: int, place: Path = PLACE) -> None:
    """Draw a bar for each piece of work that was measured. The same figures give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    samples = {work: found for work in BARS if (found := samples_of(measured, work))}
    with mpl.rc_context({"svg.hashsalt": "tenure", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = plt.subplots(figsize=(7, 3.2))
        labels = [BARS[work][0] for work in samples]
        rates = [median(found, "rate") for found in samples.values()]
        bars = axes.barh(labels, rates, color=[BARS[work][1] for work in samples])
        failed = [median(found, "failed_share") for found in samples.values()]
        texts = [
            f"{rate:.0f}/s" + (f", {share:.0%} failed" if share else "")
            for rate, share in zip(rates, failed, strict=True)
        ]
        axes.bar_label(bars, texts, padding=3, fontsize=9)
        axes.invert_yaxis()
        axes.set_xlim(right=max(rates) * 1.25)
        axes.set_title(f"{nodes} nodes at once, 10 allocations each, 1,000 VMs, all on {cores} cores", fontsize=10)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        figure.tight_layout()
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
