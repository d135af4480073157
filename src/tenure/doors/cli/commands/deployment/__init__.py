"""``tenure deployment``: BOSH deployments, from the cloud config to reports about VMs.

Loaded by name from ``deployment_group``, where the table of its commands stands; begin there.
"""
