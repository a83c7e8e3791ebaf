"""Training: majorization-minimization on the ramp loss, from starting point to threshold."""

__all__: list[str] = []
