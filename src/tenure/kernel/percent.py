"""Percentages as people read them: 0 means none of it, 100 means all of it."""


def percent(part: int, whole: int, *, digits: int = 2) -> str:
    """Write a part of a whole in per cent; of nothing it is 0.

    What is there is never rounded down to 0, nor what is short of the whole up to 100. Whole numbers all the way: as
    fractions, one address less than a /64 would be all of it.
    """
    scale = 10**digits
    steps = (200 * scale * part + whole) // (2 * whole) if whole else 0
    if part > 0 and steps == 0:
        return f"<{_written(1, digits)}%"
    if part < whole and steps >= 100 * scale:
        return f">{_written(100 * scale - 1, digits)}%"
    return f"{_written(steps, digits)}%"


def _written(steps: int, digits: int) -> str:
    whole, rest = divmod(steps, 10**digits)
    return f"{whole}.{rest:0{digits}}" if digits else str(whole)
