"""Changes of one instance: what its NICs keep, take and give back, as a job that is committed or held while hooks run.

Imported by ``instances`` and the command line. Begin with ``plan_instance``, then ``job``.
"""
