"""Reads YAML into values: cloud configs and manifests. Every error of a document is reported at once, with its place.

Imported by the parts of ``bosh`` from ``cloud_config`` upwards. Begin with ``cloud_config`` and ``manifest``.
"""
