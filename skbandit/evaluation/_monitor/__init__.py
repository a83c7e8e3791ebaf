"""Goals watched after deployment: evidence, counts, the monitor."""
