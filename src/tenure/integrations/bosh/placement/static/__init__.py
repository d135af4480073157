"""Placement of groups with static addresses: which instance gets which address of the list, spread over the AZs.

Imported by ``placement`` only. Begin with ``place_static``; ``flow`` is the max-flow that decides whether all fit.
"""
