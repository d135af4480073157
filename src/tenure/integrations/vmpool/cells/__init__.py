"""Small values in a cluster, each with a name and changed only by compare-and-swap, and pairs of them.

``integrations/vmpool`` imports it. Begin with ``cell_store`` (what a cell is), then ``claim_pairs``, which has the one
rule of all modes but the seed's: a claim and an address are two cells, and both are somebody's or neither is.
"""
