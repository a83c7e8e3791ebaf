"""Timings followed over commits by asv: ``asv run``, ``asv compare``, ``asv publish``."""
