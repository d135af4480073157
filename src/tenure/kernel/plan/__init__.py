"""The address plan of one space: networks, subnets, pools, edits of them, and the layout that is computed from them.

Every package may import it. Begin with ``plan_model``; an edit goes through ``edits``, ``apply_edit`` and
``invariants``. ``layout`` answers which addresses a claim may get.
"""
