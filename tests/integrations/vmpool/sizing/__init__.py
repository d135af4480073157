"""Pools that grow and shrink (VS9)."""
