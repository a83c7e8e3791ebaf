"""What rate expressions compile to: linear-fractional forms over rows, and their values."""
