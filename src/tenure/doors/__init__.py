"""Front doors: they translate words and errors, and decide nothing."""
