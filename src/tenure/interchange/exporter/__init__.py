"""Exports: the plan and the holdings as text, in our own formats and in NetBox's.

Imported by ``doors`` only. Begin with ``export_run``.
"""
