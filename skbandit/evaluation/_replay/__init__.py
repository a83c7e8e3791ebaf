"""Replay (Li et al. 2012, Algorithms 1 and 2): evaluate a policy on a log."""
