"""What the API can be asked, a module for each noun. Each route says what it takes, what it returns and who may ask.

Imported by ``openapi``, ``connection`` and ``process``. Begin with ``route_table``.
"""
