"""What the controller of Metal3's kinds counts."""

from dataclasses import dataclass


@dataclass
class IpamMeter:
    """Counters since the process was started."""

    served: int = 0
    adopted: int = 0
    released: int = 0
    refused: int = 0
    """Messages written on claims."""
    conflicts: int = 0
    """Picks that another object or claim had taken."""
    orphans_released: int = 0
