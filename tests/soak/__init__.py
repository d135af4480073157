"""The long proof: what ``make test`` does once, many times, with numbers that nobody chose."""
