"""``tenure render``: what others read, written from networks and from templates of machines.

``doors.cli.main`` names its group.
"""
