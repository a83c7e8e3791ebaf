"""Off-policy estimates: by weights, and by predicted rewards corrected with weights."""
