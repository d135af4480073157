"""Ganeti's own files: its configuration and the files of running instances, read into a ledger and written back."""
