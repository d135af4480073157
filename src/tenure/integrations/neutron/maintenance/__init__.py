"""``tenure neutron``: Neutron's own tables compared with the driver's and with the ledger; drift reported and repaired.

Imported by the command line only. Begin with ``run``, then ``compare``.
"""
