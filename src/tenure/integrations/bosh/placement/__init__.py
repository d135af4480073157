"""Which instances a group has, where each stands, and which static addresses each is to have. Pure: no ledger.

``adopt`` returns the instances that a group has now, ``place`` those that it is to have. Neither depends on the order
of its arguments. Imported by ``planning`` and ``verbs``. Begin with ``place_group``.
"""

from tenure.integrations.bosh.placement.migrated_instances import adopt
from tenure.integrations.bosh.placement.place_group import place
from tenure.integrations.bosh.placement.placement_model import Placed, Placement, Present

__all__ = ["Placed", "Placement", "Present", "adopt", "place"]
