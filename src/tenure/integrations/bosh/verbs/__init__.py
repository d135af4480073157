"""What users do with a deployment: deploy, report VMs, errands, compilation, cloud check, recreate.

Imported by ``views`` and ``deployments_api``, and by ``doors`` for types of results. Begin with ``deploy``; reports
about VMs are in ``report_vm``.
"""
