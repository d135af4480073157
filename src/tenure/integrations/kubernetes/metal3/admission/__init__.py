"""What users may write in Metal3's kinds, and what is filled in before it is stored.

``ipam_controller`` imports it. Begin with ``ipam_admission``, the two webhooks; each kind has its rules in a module of
its own, and ``admission_view`` says what the rules know of the cluster.
"""
