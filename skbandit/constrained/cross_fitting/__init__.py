"""Choice of a direction and its threshold by rows that were left out of its training."""
