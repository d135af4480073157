"""The OpenAPI document, made from the routes: nothing is served that the document does not describe.

Imported by ``non_api``, and by ``tools/make_openapi.py``. Begin with ``openapi_document``.
"""
