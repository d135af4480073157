"""The census: how much of every network is held and free, where, and how that came about; kept current from the log."""
