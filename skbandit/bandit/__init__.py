"""Act: policies that choose arms by context, and learn from what came of it."""

from skbandit.bandit._policy import GLMUCBPolicy

__all__ = ["GLMUCBPolicy"]
