"""Which instances a group has, where each stands, and which static addresses each is to have. Pure: no ledger.

``adopt`` tells whom a group has now, ``place`` whom it is to have. Neither depends on the order of what it is given.
"""

from tenure.doors.deployments.placing.adopting import adopt
from tenure.doors.deployments.placing.groups import place
from tenure.doors.deployments.placing.values import Placed, Placement, Present

__all__ = ["Placed", "Placement", "Present", "adopt", "place"]
