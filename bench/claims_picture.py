"""``python -m bench.claims_picture``: measure and draw claims a second over how many addresses of the pool are held."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.kubernetes_cases import CLAIMS, SWEEP, SWEPT_METAL3, SWEPT_OURS
from bench.kubernetes_measuring import measure_sweep

PLACE = Path(__file__).parents[1] / "docs" / "pictures" / "kubernetes-claims.svg"
LINES = {SWEPT_OURS: ("Tenure", "#1f6feb"), SWEPT_METAL3: ("Metal3 v1.13.1, limit of its client lifted", "#d4731c")}


def draw(steps: Sequence[int], rates: Mapping[str, Sequence[float]], place: Path = PLACE) -> None:
    """Draw a line for each operator. The same figures give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "tenure", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = plt.subplots(figsize=(7, 3.6))
        for work, values in rates.items():
            label, colour = LINES[work]
            axes.plot(steps, values, marker="o", markersize=4, color=colour, label=label)
        axes.set_xlabel("addresses of the pool that are held")
        axes.set_ylabel("claims served/s")
        axes.set_title(f"{CLAIMS} claims at once, kube-apiserver v1.35 and etcd on 2 cores", fontsize=10)
        axes.set_xticks(list(steps))
        axes.set_ylim(bottom=0)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
        figure.tight_layout()
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


def main() -> None:
    """Measure, print and draw."""
    rates = measure_sweep([SWEPT_OURS, SWEPT_METAL3], SWEEP, CLAIMS)
    for work, values in rates.items():
        print(LINES[work][0], *(f"{held:,}: {rate:.0f}/s" for held, rate in zip(SWEEP, values, strict=True)), sep="  ")
    draw(SWEEP, rates)


if __name__ == "__main__":
    main()
