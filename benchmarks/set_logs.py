"""Sets of 3 of 10 ads learned from synthetic logs of one ad per row: which costs to learn from.

The logger ignores x; it shows ads uniformly in a tenth of the rows, else by a softmax of `skew`
times standard normal numbers, so that 0 is uniform. Figures are shares of the value of the best
sets, means over seeds.

    python -m benchmarks.set_logs [n_seeds]
"""

import sys
import warnings

import numpy as np
import pandas as pd

from skbandit import RegressionSetSelector
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector, logged_costs

N, N_ADS, M = 3000, 10, 3
SWITCH = 0.05  # propensity below which "switch" trusts the model


def switched(robust, shown, paid, p):
    """Doubly robust costs, but the prediction where the propensity is below SWITCH."""
    found, rows = robust.to_numpy().copy(), np.flatnonzero(p < SWITCH)
    of_rows = found[rows, shown[rows]]
    found[rows, shown[rows]] = (of_rows - paid[rows] / p[rows]) / (1.0 - 1.0 / p[rows])
    return found


def earned(seed, skew):
    """Value of the sets by method, as a share of that of the best sets."""
    rng = np.random.default_rng(seed)
    X, costs, expected = make_set_selection(2 * N, n_ads=N_ADS, random_state=seed)
    logits = skew * rng.normal(size=N_ADS)
    policy = np.exp(logits - logits.max())
    policy = 0.9 * policy / policy.sum() + 0.1 / N_ADS
    shown = rng.choice(N_ADS, size=N, p=policy)
    paid, p = costs[np.arange(N), shown], policy[shown]
    direct = np.full((N, N_ADS), np.nan)
    direct[np.arange(N), shown] = paid
    y = {"full": costs[:N], "nan": direct}
    for method in ("ips", "snips", "dr"):
        options = {"X": X[:N], "random_state": 0} if method == "dr" else {}
        y[method] = logged_costs(shown, paid, p, method=method, ads=range(N_ADS), **options)
    y["switch"] = switched(y["dr"], shown, paid, p)
    best = np.sort(expected[N:], axis=1)[:, :M].sum(axis=1).mean()
    popular = PopularitySetSelector(M).fit(X[:N], costs[:N])
    scores = {"popularity": -popular.score(X[N:], expected[N:])}
    for name, table in y.items():
        selector = RegressionSetSelector(n_select=M).fit(X[:N], np.asarray(table))
        chosen = selector.predict(X[N:])
        scores[name] = np.take_along_axis(expected[N:], chosen, axis=1).sum(axis=1).mean()
    return {"skew": skew} | {name: value / best for name, value in scores.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    table = pd.DataFrame([earned(seed, skew) for skew in (0.0, 1.0, 1.5) for seed in seeds])
    print(table.groupby("skew").mean().round(3).to_string())
