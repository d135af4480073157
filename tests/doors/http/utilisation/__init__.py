"""Counts, maps and timelines: right at every moment, whatever goes on meanwhile."""
