"""What users can ask of networks, instances, nodes and groups: fields, texts, and what ``tenure verify`` finds.

Imported by the command line only. Begin with ``network_fields`` and ``machine_fields``.
"""
