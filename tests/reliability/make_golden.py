"""Write golden files: fitted estimators, pickled, and what they answered when they were.

Run as ``python -m tests.reliability.make_golden`` from the root of the repository, in an
environment with the oldest supported scikit-learn and in one with the newest: when a release is
made, or when an estimator's fitted state was changed on purpose so that older pickles cannot be
read (then say so in ``changes/``). They are not written anew for any other reason, as it is old
pickles that the test is about.
"""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import clone

from tests.reliability.fitted import FITS

GOLDEN = Path(__file__).parent / "golden"


def folder():
    """Where the files of this environment are.

    scikit-learn's own pickles, and pandas', may not be readable by their other versions.
    """
    minor = ".".join(sklearn.__version__.split(".")[:2])
    return GOLDEN / f"sklearn-{minor}-pandas-{pd.__version__.split('.')[0]}"


def main():
    """Write the files of this environment."""
    folder().mkdir(parents=True, exist_ok=True)
    for name, fit in FITS.items():
        estimator = fit(clone(fit.estimator))
        (folder() / f"{name}.pickle").write_bytes(pickle.dumps(estimator, protocol=5))
        np.savez_compressed(folder() / f"{name}.npz", **fit.asked(estimator))


if __name__ == "__main__":
    main()
