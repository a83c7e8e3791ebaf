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

import numpy as np
from scipy.special import betaincinv

from skbandit.measure._atoms import atom_counts
from skbandit.measure._columns import Data
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom
from skbandit.utils._trials import Dependence, dependence


def effective_rows(rate: Rate, data: Data, positive: np.ndarray) -> float:
    """Number of independent rows of equal weight that tell as much of the rate.

    Of Kish's number, (sum w)^2 / sum w^2 over the rows in the denominator, dependence of rows and
    weights that go with the outcome leave a part: see `_trials`. The smallest number if the
    expression has several atoms.
    """
    effects = [dependence_at(*trials_at(atom, data, positive), atom, data) for atom in rate.atoms]
    return min((effect.rows / (effect.deff * effect.spread) for effect in effects), default=0.0)


def groups_behind(rate: Rate, data: Data, positive: np.ndarray) -> int:
    """Number of groups of dependent rows in the denominator, the smallest of several atoms."""
    assert data.dependent is not None
    trials = (trials_at(atom, data, positive)[1] > 0 for atom in rate.atoms)
    return min((len(np.unique(data.dependent[counted])) for counted in trials), default=0)


def dependence_at(success: np.ndarray, trial: np.ndarray, atom: Atom, data: Data) -> Dependence:
    """Dependence of the trials of an atom at given decisions.

    Costs by a column are no shares and have no interval: a group of them counts as one trial.
    """
    total, squares = trial.sum(), trial**2 / data.effective(atom, atom)[:, 0]
    if atom.amount is not None:
        return dependence(np.zeros(len(trial)), trial, data.dependent, squares=squares)
    share = float((trial * success).sum() / total) if total > 0 else 0.0
    return dependence(trial * (success - share), trial, data.dependent, share, squares)


def trials_at(atom: Atom, data: Data, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are successes, and the weight of each as a trial; shape (n,)."""
    success, trial = trials_if_predicted(atom, data)
    rows, predicted = np.arange(len(positive)), positive.astype(int)
    return success[rows, predicted], trial[rows, predicted]


# --- rows as trials --------------------------------------------------------------------


def trials_if_predicted(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is a success, and its weight as a trial, by its decision; (n, D)."""
    numerator, denominator, _ = atom_counts(atom, data)
    success = numerator > 0
    kind = atom.kind
    per_trial = np.where(success, kind.success[1], kind.failure)
    return success, denominator / per_trial


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
