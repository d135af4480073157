"""Rendering without a cluster: the machine's objects come from files, its addresses from files, options or a ledger."""
