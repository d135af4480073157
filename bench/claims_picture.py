"""The picture for the docs: claims a second over how many addresses of the pool are held, ours and others'."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.kubernetes_cases import CLAIMS_AT_ONCE, CLAIMS_IN_CLUSTER, CLAIMS_UNTHROTTLED
from bench.kubernetes_claims import SweepPoint

PLACE = Path(__file__).parents[1] / "docs" / "pictures" / "kubernetes-claims.svg"
LINES = {
    CLAIMS_AT_ONCE: ("Tenure", "#1f6feb"),
    CLAIMS_IN_CLUSTER: ("Cluster API's in-cluster provider v1.1.0", "#2da44e"),
    CLAIMS_UNTHROTTLED: ("Metal3 v1.13.1, limit of its client lifted", "#d4731c"),
}


def draw_claims(points: Mapping[str, Sequence[SweepPoint]], claims: int, cores: int, place: Path = PLACE) -> None:
    """Draw a line for each operator. The same figures give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "tenure", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = plt.subplots(figsize=(7, 3.6))
        for work, line in points.items():
            label, colour = LINES[work]
            axes.plot(*zip(*line, strict=True), marker="o", markersize=4, color=colour, label=label)
        axes.set_xlabel("addresses of the pool that are held")
        axes.set_ylabel("claims served/s")
        axes.set_title(f"{claims} claims at once, all servers on {cores} cores", fontsize=10)
        axes.set_xticks(sorted({point.held for line in points.values() for point in line}))
        axes.set_ylim(bottom=0)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
        figure.tight_layout()
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


def picture_lines(points: Mapping[str, Sequence[SweepPoint]]) -> list[str]:
    """Write the figures of the picture, a line for each operator."""
    return [
        "  ".join([LINES[work][0], *(f"{held:,}: {rate:.0f}/s" for held, rate in line)])
        for work, line in points.items()
    ]
