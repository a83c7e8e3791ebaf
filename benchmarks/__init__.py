"""Comparisons of the library with others; README.md of this folder lists the commands."""
