"""Cloud configs in the ledger: uploaded, kept as papers, and laid out as networks in the same ``apply``.

Imported by the parts of ``bosh`` from ``planning`` upwards, and by ``doors`` for their types. Begin with ``configs``,
then ``ledger_networks``.
"""
