"""The processes of ``tenure serve``: one that serves, and one that starts and watches several of them.

Imported by the command line only. Begin with ``run_server``.
"""
