"""The memory of the house: one room a store, none knows another."""
