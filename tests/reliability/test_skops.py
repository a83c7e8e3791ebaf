"""skops saves and loads every estimator, and needs to trust this package's own types only."""

import numpy as np
import pytest
from sklearn.base import clone

from tests.reliability.fitted import FITS
from tests.tiers import first

io = pytest.importorskip("skops.io", reason="skops is not installed")


@pytest.mark.parametrize("name", first(3, FITS))
def test_saved_and_loaded(name):
    fit = FITS[name]
    estimator = fit(clone(fit.estimator))
    saved = io.dumps(estimator)
    trusted = io.get_untrusted_types(data=saved)
    foreign = [one for one in trusted if not one.startswith("skbandit.")]
    assert not foreign
    again, expected = fit.asked(io.loads(saved, trusted=trusted)), fit.asked(estimator)
    for method in expected:
        np.testing.assert_array_equal(again[method], expected[method])
