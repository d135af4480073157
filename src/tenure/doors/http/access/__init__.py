"""Whether a caller may come in: tokens, logins, scopes, how often and how much at a time.

Imported by ``routes`` and the parts above it; ``tenure token`` imports ``token_store``. Begin with ``authenticate``.
"""
