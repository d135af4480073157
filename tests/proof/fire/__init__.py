"""Servers under fire: clients that hang up and ask elsewhere, answers lost behind a commit, frozen servers, held locks.

Begin with ``fire_rounds`` (how a round goes) and ``rules`` (what must be so afterwards).
"""
