"""What all commands have in common: groups that load on demand, shared options, completion, exit codes, hints.

Imported by ``output``, ``commands`` and ``main``. Begin with ``click_base``; ``exit_codes`` has the table of errors.
"""
