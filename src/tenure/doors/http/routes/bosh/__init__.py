"""Routes of the API about BOSH deployments. The modules that read documents are loaded with the first request for them.

Imported by ``route_table`` only. Begin with ``deployment_routes``; ``*_service`` calls the integration.
"""
