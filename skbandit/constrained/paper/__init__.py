"""The paper of Goh, Cotter, Gupta & Friedlander (NIPS 2016), and nothing else.

`_problem` has the ramp, Problems 1 to 3 and the convex bounds of the ramp; `_mm` Algorithm 1 and
`_cutting_plane` Algorithm 2; `_starts` and `_train` what precedes and follows Algorithm 1, and
`_ramp_classifier` the estimator around them. Each solver of Problem 3 is one file behind the small
interface of `_interface`.
"""

__all__: list[str] = []
