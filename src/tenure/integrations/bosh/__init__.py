"""BOSH: cloud configs and manifests in, reserved addresses out. Nothing here prints or speaks HTTP.

The command line and the HTTP server import it. Begin with ``deployments_api``, which has every verb; a deploy is in
``verbs/deploy``.
"""
