"""Pools that are bound to a ledger, on real servers."""
