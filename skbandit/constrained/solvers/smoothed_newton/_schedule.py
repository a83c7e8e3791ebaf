"""Schedule of the smoothing: how sharp the hinges are, and when they become sharper.

Three stages, by eps. Coarse: one good step per eps suffices. Fine: steps are taken until they
settle, and the point is certified once eps is small enough for the gap to be. Proximal: the
centres of the smoothing move to the hinges' slopes, where it is exact, and the gap goes to 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from skbandit.constrained.solvers.smoothed_newton._newton_step import Progress

SMOOTHEST, SHARPEST = 1.0, 1e-3
"""eps of a cold start, and the smallest eps, in units of the score (a ramp has width 1)."""

FINE, PROXIMAL = 0.1, 0.02
"""Largest eps of the fine stage, and of the proximal stage.

A warm start begins with FINE, or with PROXIMAL if an accurate solution is required.
"""

WARM_GAP = 0.1
"""Largest gap of a solution that counts as a warm start, as a share of the objective's scale."""

MODERATE_TOL, ROUGH_TOL = 1e-4, 5e-6
"""Tolerances, as shares of the objective's scale, above which less work will do.

Above MODERATE_TOL a warm start begins with FINE; above ROUGH_TOL centres do not move, as
uncentred hinges majorise the true ones: a point feasible for them is feasible.
"""

GAP_PER_SQUARE = 0.01
"""Cautious estimate of gap / (eps^2 scale), which is about 0.1: do not certify before."""

FIRST_SETTLE_TOL, LAST_SETTLE_TOL = 2e-3, 1e-13
"""Newton decrement, in units of eps, below which steps have settled: at first, and at last."""


@dataclass(frozen=True)
class SmoothingSchedule:
    """One stage of the schedule; the methods return the next one.

    Parameters
    ----------
    tol : float
        Duality gap to reach.
    objective_scale : float
        Sum of the objective's costs.
    eps : float
        Width of the smoothing.
    lifted : bool
        Whether the hinges are uncentred, and lifted by eps/4 to majorise the true ones.
    settle_tol : float
        Newton decrement, in units of eps, below which steps have settled.
    """

    tol: float
    objective_scale: float
    eps: float = SMOOTHEST
    lifted: bool = True
    settle_tol: float = FIRST_SETTLE_TOL

    @classmethod
    def start(cls, tol: float, objective_scale: float, warm_gap: float | None) -> SmoothingSchedule:
        """The first stage, given the gap of the warm start, if any."""
        eps = SMOOTHEST
        if warm_gap is not None and warm_gap <= WARM_GAP * objective_scale:
            eps = FINE if tol > MODERATE_TOL * objective_scale else PROXIMAL
        return cls(tol, objective_scale, eps)

    @property
    def lift(self) -> float:
        """Height added to every smoothed hinge."""
        return self.eps / 4 if self.lifted else 0.0

    @property
    def is_coarse(self) -> bool:
        """Whether one good step suffices before sharpening, without a certificate."""
        return self.eps > FINE

    @property
    def certifies(self) -> bool:
        """Whether the point is worth certifying once steps have settled."""
        hopeless = GAP_PER_SQUARE * self.eps * self.eps * self.objective_scale > self.tol
        return not self.is_coarse and not (self.eps > SHARPEST and hopeless)

    @property
    def moves_centres(self) -> bool:
        """Whether the centres move when the stage ends."""
        is_rough = self.tol > ROUGH_TOL * self.objective_scale
        spared = is_rough and self.lifted and self.eps > SHARPEST
        return self.eps <= PROXIMAL and not spared

    def is_finished(self, progress: Progress) -> bool:
        """Whether the stage ends after a step."""
        settled = progress.decrement <= self.settle_tol * self.eps and progress.excess <= max(
            1e-3 * self.eps, 1e-9
        )
        if self.is_coarse:
            return settled or progress.length > 0.9 or progress.gain < 1e-12
        return settled or progress.length <= 1e-8

    def stricter(self) -> SmoothingSchedule:
        """Require smaller decrements in the proximal stage, after a certificate."""
        if self.eps > PROXIMAL:
            return self
        return replace(self, settle_tol=max(0.3 * self.settle_tol, LAST_SETTLE_TOL))

    def sharper(self) -> SmoothingSchedule:
        """The next stage; it is for the caller to move the centres if `moves_centres`."""
        if self.is_coarse:
            return replace(self, eps=self.eps / 4)
        if self.moves_centres:
            return replace(self, eps=max(self.eps / 2, SHARPEST), lifted=False)
        return replace(self, eps=max(min(self.eps / 2, PROXIMAL), SHARPEST))
