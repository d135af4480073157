"""What users read of deployments: lists, differences between manifests, results as documents.

Imported by ``deployments_api`` and ``doors``. Begin with ``queries``.
"""
