"""The log as a stream: followed once for the whole process, sent to clients as server-sent events.

Imported by ``utilisation``, ``routes`` and ``server_state``. Begin with ``log_follower``.
"""
