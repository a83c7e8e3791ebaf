"""Off-policy estimates: IPS, SNIPS and doubly robust."""
