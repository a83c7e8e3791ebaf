"""Functions of genes: the share of the value of the best sets that selectors find."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def yeast(real_data):
    """Genes, costs of naming a function (-1 if they have it), and random numbers for each cost."""
    path = Path(real_data) / "yeast" / "yeast.csv.gz"
    if not path.exists():
        pytest.skip(f"real data: {path} does not exist, and has no loader to download it")
    table = pd.read_csv(path)
    costs = -table.filter(like="Class").astype(float)
    lots = np.random.default_rng(0).random(costs.shape)
    return table.filter(like="Att"), costs, lots


def shares(yeast, selector, m, unavailable=0.0, splits=5):
    """Value beside that of the best available sets, on three in ten of the genes each time."""
    X, y, lots = yeast
    # at least m ads are available: those with the largest numbers
    mask = (lots >= unavailable) | (lots.argsort(axis=1).argsort(axis=1) >= y.shape[1] - m)
    found = []
    for seed in range(splits):
        train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=seed)
        selector.fit(X.iloc[train], y.iloc[train], available=mask[train])
        value = selector.score(X.iloc[test], y.iloc[test], available=mask[test])
        costs = np.where(mask[test], y.iloc[test], np.inf)
        found.append(value / -np.sort(costs, axis=1)[:, :m].sum(axis=1).mean())
    return np.array(found)


@pytest.mark.parametrize("m", [1, 3, 5, 10])
def test_ridge_beats_popularity(yeast, m):
    ridge = shares(yeast, RegressionSetSelector(n_select=m), m)
    popular = shares(yeast, PopularitySetSelector(n_select=m), m)
    assert ridge.mean() > popular.mean()
    if m == 5:
        assert ridge.mean() >= 0.755
        assert (ridge > popular + 0.06).all()


@pytest.mark.parametrize(("unavailable", "share"), [(0.3, 0.815), (0.5, 0.865)])
def test_unavailable_ads(yeast, unavailable, share):
    """Figures measured before, with other lots: .824 and .874."""
    ridge = shares(yeast, RegressionSetSelector(Ridge(10.0), n_select=5), 5, unavailable)
    popular = shares(yeast, PopularitySetSelector(n_select=5), 5, unavailable)
    assert ridge.mean() >= share
    assert (ridge > popular).all()


def test_probabilities_serve_as_well(yeast):
    selector = RegressionSetSelector(LogisticRegression(C=0.1, max_iter=300), n_select=5)
    assert shares(yeast, selector, 5, splits=2).mean() >= 0.755


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("m", "over_post", "over_popular", "splits"),
    [(3, 0.01, 0.04, 2), (5, 0.04, 0.06, 2), (10, 0.04, -0.01, 1)],
)
def test_masked_rounds_beat_rounds_as_published(yeast, m, over_post, over_popular, splits):
    masked = shares(yeast, SetSelectClassifier(n_select=m, random_state=0), m, splits=splits)
    popular = shares(yeast, PopularitySetSelector(n_select=m), m, splits=splits)
    assert (masked > popular + over_popular).all()
    for reduction in ("filter_tree", "regression"):
        verbatim = SetSelectClassifier(
            n_select=m, reduction=reduction, method="published", random_state=0
        )
        assert (masked > shares(yeast, verbatim, m, splits=splits) + over_post).all()


@pytest.mark.parametrize("reduction", ["weighted_all_pairs", "one_vs_rest", "regression"])
def test_reductions_without_rounds_beat_popularity(yeast, reduction):
    selector = SetSelectClassifier(n_select=5, reduction=reduction)
    popular = shares(yeast, PopularitySetSelector(n_select=5), 5, splits=3)
    assert (shares(yeast, selector, 5, splits=3) > popular + 0.06).all()


def test_rounds_as_published_over_ridge_lose_to_popularity(yeast):
    verbatim = SetSelectClassifier(
        n_select=5, reduction="regression", method="published", random_state=0
    )
    popular = shares(yeast, PopularitySetSelector(n_select=5), 5)
    assert (shares(yeast, verbatim, 5) < popular).all()


@pytest.mark.thorough
def test_rounds_with_unavailable_ads(yeast):
    popular = shares(yeast, PopularitySetSelector(n_select=5), 5, 0.3, splits=2)
    tree = SetSelectClassifier(n_select=5, random_state=0)
    assert (shares(yeast, tree, 5, 0.3, splits=1) > popular[:1]).all()
    pairs = SetSelectClassifier(n_select=5, reduction="weighted_all_pairs")
    assert shares(yeast, pairs, 5, 0.3, splits=2).mean() > 0.82
