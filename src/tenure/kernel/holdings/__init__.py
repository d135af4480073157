"""Values about holdings: rows, wishes and verdicts, entries of the log, deadlines, idempotency keys, who asked.

Every package may import it. Begin with ``holding_model``; ``log_entries`` says what the log records of each change.
"""
