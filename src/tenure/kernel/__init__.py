"""The rules of the ledger: pure values and functions. No I/O, no clock, no random numbers, no logging.

Every package may import the kernel; the kernel imports nothing of Tenure. Begin with ``plan/plan_model`` (the address
plan) and ``holdings/holding_model`` (what is held), then ``plan/layout`` and ``picking/policies``.
"""
