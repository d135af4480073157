"""What is served outside the API: health, metrics, the OpenAPI document, the web page.

Imported by ``app`` only. Begin with ``non_api_routes``.
"""
