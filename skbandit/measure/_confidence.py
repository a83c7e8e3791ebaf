"""Exact confidence limits of single rates.

For a rule fixed in advance, each row in a rate's denominator is a trial, each row in its
numerator a success. With unequal weights or dependent rows, the number of trials is that of
`_trials`. The limits are those of Clopper & Pearson (Biometrika 1934); limits of several rates are
in `_score_limits`.

Training chooses its rule on the same rows. For thresholds on given scores this costs nothing if
the limit is monotone in the threshold, as for recall or the false positive rate: let t* be
where the population's rate crosses the bound. A chosen threshold beyond t* passes the test only
if t* passes too, and t* is fixed in advance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from skbandit.rates._atoms import rows_of_atom
from skbandit.rates._columns import Data
from skbandit.rates._kinds import Atom
from skbandit.utils._trials import Dependence, dependence


def trials_at(atom: Atom, data: Data, positive: np.ndarray) -> tuple[Trials, Dependence]:
    """Return the trials of an atom at given decisions, and their dependence.

    Of merged rows, the same objects each time. Costs by a column are no shares and have no
    interval: a group of them counts as one trial.
    """
    key = "trials", atom.key, id(positive)
    if key in data.counted:
        return data.counted[key][1:]
    trials = trials_of(atom, data, positive)
    success, trial = trials.counted
    total, squares = trial.sum(), trial**2 / data.effective(atom, atom, trials.rows)
    group = None if data.dependent is None else data.dependent[trials.rows]
    share = float((trial * success).sum() / total) if total > 0 else 0.0
    if atom.amount is not None:
        effect = dependence(np.zeros(len(trial)), trial, group, squares=squares)
    else:
        effect = dependence(trial * (success - share), trial, group, share, squares)
    if data.train.merged is not None:
        data.counted[key] = positive, trials, effect  # so that its id remains
    return trials, effect


# --- rows as trials --------------------------------------------------------------------


@dataclass(frozen=True)
class Trials:
    """The rows of an atom as trials, by their codes and by decision.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Those of positive weight.
    weight : ndarray of shape (m,)
    code : ndarray of int, shape (m,)
    success : ndarray of bool, shape (K, D)
        Whether a row is a success, by its code and decision.
    size : ndarray of shape (K, D)
        Its weight as a trial, if it has weight 1.
    """

    rows: np.ndarray
    weight: np.ndarray
    code: np.ndarray
    success: np.ndarray
    size: np.ndarray

    @property
    def counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are successes, and their weights as trials, at the first decision; (m,)."""
        return self.success[self.code, 0], self.weight * self.size[self.code, 0]


def trials_of(atom: Atom, data: Data, decided: np.ndarray | None = None) -> Trials:
    """Return the rows that an atom counts as trials, by decision or at given decisions."""
    counted = rows_of_atom(atom, data)
    (above, below), code = counted.tables, counted.actual
    if counted.amount is not None:  # a negative amount is no success
        code = code + len(above) * (counted.amount[:, 0] <= 0)
        above, below = np.vstack([above, 0 * above]), np.vstack([below, below])
    if decided is not None:
        code = code * above.shape[1] + decided.astype(int)[counted.rows]
        above, below = above.reshape(-1, 1), below.reshape(-1, 1)
    success = above > 0
    size = below / np.where(success, atom.kind.success[1], atom.kind.failure)
    return Trials(counted.rows, counted.weight, code, success, size)


# --- of proportions --------------------------------------------------------------------


def clopper_pearson(share: np.ndarray, trials: np.ndarray, tail: float) -> np.ndarray:
    """Lower confidence limit of a binomial probability (Clopper & Pearson 1934).

    Parameters
    ----------
    share, trials : ndarray
        Share of successes and number of trials, not necessarily an integer.
    tail : float
        Probability, at most, that the limit is above the true probability.

    Returns
    -------
    ndarray
        The upper limit is ``1 - clopper_pearson(1 - share, trials, tail)``.

    Examples
    --------
    >>> float(clopper_pearson(np.array(1.0), np.array(10), 0.025).round(4))
    0.6915
    """
    successes = share * trials
    limit = betaincinv(successes, trials - successes + 1.0, tail)
    return np.where(successes > 0, limit, 0.0)


def wilson_score(share: np.ndarray, trials: np.ndarray, z: float) -> np.ndarray:
    """Lower score limit of a binomial probability (Wilson 1927); 0 without trials.

    Parameters
    ----------
    share, trials : ndarray
        Share of successes and number of trials, not necessarily an integer.
    z : float
        Normal quantile of the level, at least 0.

    Returns
    -------
    ndarray
        The upper limit is ``1 - wilson_score(1 - share, trials, z)``.

    Examples
    --------
    >>> float(wilson_score(np.array(0.5), np.array(100), 1.96).round(4))
    0.4038
    """
    z2 = z * z
    if z2 == 0:
        return np.asarray(share, dtype=float)
    # sqrt(z2) * sqrt(z2/4) is z2/2: at share 0 the limit is 0
    spread = z * np.sqrt(share * (1.0 - share) * trials + z2 / 4.0)
    return np.maximum((share * trials + z2 / 2.0 - spread) / (trials + z2), 0.0)
