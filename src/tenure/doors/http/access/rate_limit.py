"""How often somebody may ask: a bucket for each, refilled steadily. Counts are those of one process."""

MOST_BUCKETS = 10_000


class Limiter:
    """Lets through ``burst`` at once, and ``per_s`` a second in the long run. Cost: a look in a dictionary."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}
        """What is left, and when that was so."""

    def take(self, who: str, now: float) -> float:
        """Count one, if it is let through; return how long somebody must wait until he is, 0 if he need not."""
        left = self._left(who, now)
        if left < 1:
            return (1 - left) / self._per_s
        if who not in self._buckets and len(self._buckets) >= MOST_BUCKETS:
            self._forget(now)
        self._buckets[who] = (left - 1, now)
        return 0.0

    def give_back(self, who: str, now: float) -> None:
        """Count one less: it was none of those that are counted here."""
        self._buckets[who] = (min(self._burst, self._left(who, now) + 1), now)

    def _left(self, who: str, now: float) -> float:
        known = self._buckets.get(who)
        if known is None:
            return self._burst
        left, then = known
        return min(self._burst, left + (now - then) * self._per_s)

    def _forget(self, now: float) -> None:
        """Make room: whoever may do everything again need not be remembered, and in a flood nobody is."""
        kept = {who: known for who, known in self._buckets.items() if self._left(who, now) < self._burst}
        self._buckets = kept if len(kept) < MOST_BUCKETS else {}
