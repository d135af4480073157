"""The picture for the README: allocations a second over fill. The same figures give the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

PLACE = Path(__file__).parents[1] / "docs" / "pictures" / "allocations.svg"
COLOURS = {"random": "#1f6feb", "lowest": "#d4731c"}


def draw(fills: Sequence[int], rates: Mapping[str, Sequence[float]], raw: float, place: Path = PLACE) -> None:
    """Draw a line for each policy over fill, and the raw limit across."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    # Text stays text: a small file that reads well beside other text.
    with mpl.rc_context({"svg.hashsalt": "tenure", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = plt.subplots(figsize=(7, 3.6))
        for policy, values in rates.items():
            axes.plot(fills, values, marker="o", markersize=4, color=COLOURS.get(policy), label=policy)
        axes.axhline(raw, color="#777777", linestyle="--", linewidth=1, label="raw, one row a commit")
        axes.set_xlabel("% of the pool held (IPv4 /16)")
        axes.set_ylabel("durable allocations/s")
        axes.set_title("PostgreSQL, 16 callers, one server", fontsize=10)
        axes.set_xticks(list(fills))
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
        figure.tight_layout()
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
