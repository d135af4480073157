"""Pools in every mode."""
