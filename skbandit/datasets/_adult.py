"""The Adult census data: the table of the UCI repository, and its binary encoding a9a."""

import json
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.utils import Bunch

from skbandit.datasets._files import INCLUDED

_FOLDER = INCLUDED / "adult"
_COLUMNS: dict[str, list[Any]] = json.loads((_FOLDER / "columns.json").read_text(encoding="utf-8"))
"""The columns, by the publisher's names with underscores, so that `DataFrame.query` takes them: the
levels of a category in the publisher's order, or the upper ends of all but the last of the bins of
a number in a9a, which are fifths of the rows, or zero and the rest."""
_TARGET = "income"
# Zero-based columns of a9a; features 72 and 73 in LIBSVM's one-based numbering.
_FEMALE, _MALE = 71, 72

Subset = Literal["train", "test", "all"]


def load_adult(
    *, subset: Subset = "train", return_X_y: bool = False, as_frame: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load the Adult census data installed with the package (classification, 14 mixed features).

    The training and test tables have the same dtypes: categorical columns have the levels of both.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The publisher's training rows (32,561), test rows (16,281), or the former followed by the
        latter.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Whether data and target are pandas objects; if False, they are object arrays.

    Returns
    -------
    Bunch or tuple
        A Bunch with

        - ``data``: DataFrame with 14 columns, 8 of them categorical; '?' is read as missing.
        - ``target``: Series of ``"<=50K"`` and ``">50K"``, named ``income``.
        - ``frame``: DataFrame of both (None unless `as_frame`).
        - ``feature_names``, ``target_names``, ``DESCR``.

        With `return_X_y`, the tuple ``(data, target)``.

    See Also
    --------
    load_a9a : The same people, encoded as 123 binary features.

    Notes
    -----
    The files are the publisher's, compressed: Becker and Kohavi, "Adult", UCI Machine Learning
    Repository (1996), https://doi.org/10.24432/C5XW20, CC BY 4.0.

    Examples
    --------
    >>> from skbandit.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.data.shape
    (32561, 14)
    >>> adult.frame.groupby("sex", observed=True)["income"].value_counts(normalize=True).round(3)
    sex     income
    Female  <=50K     0.891
            >50K      0.109
    Male    <=50K     0.694
            >50K      0.306
    Name: proportion, dtype: float64
    """
    if subset not in ("train", "test", "all"):
        raise ValueError(f"subset must be 'train', 'test' or 'all', got {subset!r}.")
    parts = ["train", "test"] if subset == "all" else [subset]
    # Read both files: each alone lacks some levels of a categorical column.
    files = {"train": _FOLDER / "adult.data.gz", "test": _FOLDER / "adult.test.gz"}
    table = pd.concat({part: _parse_adult(path) for part, path in files.items()})
    categories = [name for name, levels in _COLUMNS.items() if isinstance(levels[0], str)]
    frame = table.astype(dict.fromkeys(categories, "category")).loc[parts].reset_index(drop=True)

    data: Any = frame[list(_COLUMNS)]
    target: Any = frame[_TARGET]
    if not as_frame:
        data, target = data.to_numpy(dtype=object), target.to_numpy(dtype=object)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame if as_frame else None,
        feature_names=list(_COLUMNS),
        target_names=["<=50K", ">50K"],
        DESCR=(_FOLDER / "adult.md").read_text(encoding="utf-8"),
    )


def _parse_adult(source: Any) -> pd.DataFrame:
    r"""Parse the published text of a file.

    Examples
    --------
    The test file starts with a comment, and its labels end in a dot:

    >>> from io import BytesIO
    >>> line = b"25, ?, 226802, 11th, 7, Divorced, ?, Husband, Black, Male, 0, 0, 40, ?, >50K."
    >>> frame = _parse_adult(BytesIO(b"|1x3 Cross validator\n" + line + b"\n\n"))
    >>> frame[["age", "workclass", "sex", "income"]]
       age workclass   sex income
    0   25       NaN  Male   >50K
    """
    frame = pd.read_csv(
        source,
        names=[*_COLUMNS, _TARGET],
        comment="|",
        skipinitialspace=True,
        na_values="?",
        keep_default_na=False,
    )
    frame[_TARGET] = frame[_TARGET].str.removesuffix(".")
    return frame


def load_a9a(
    *, subset: Subset = "train", return_X_y: bool = False
) -> Bunch | tuple[csr_matrix, np.ndarray]:
    """Encode the Adult data installed with the package as LIBSVM's a9a (123 sparse features).

    Numbers are binned and categories one-hot encoded, a missing value by zeros: the matrix is
    the published one, entry by entry.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The training rows (32,561), the test rows (16,281), or the former followed by the latter.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or tuple
        A Bunch with

        - ``data``: csr_matrix of shape (n, 123), float64 zeros and ones, int32 sorted indices.
        - ``target``: int array of -1 and 1.
        - ``female``, ``male``: bool arrays, the columns 71 and 72 of ``data``.
        - ``DESCR``.

        With `return_X_y`, the tuple ``(data, target)``.

    See Also
    --------
    load_adult : The same people as a table of numbers and categories.

    Examples
    --------
    >>> from skbandit.datasets import load_a9a
    >>> a9a = load_a9a()
    >>> a9a.data.shape, int(a9a.female.sum())
    ((32561, 123), 10771)
    """
    people, income = load_adult(subset=subset, return_X_y=True)
    blocks = []
    for name, levels in _COLUMNS.items():
        if isinstance(levels[0], str):
            # a missing value has the code -1, and no column
            code, size = pd.Categorical(people[name], levels).codes, len(levels)
        else:
            code, size = np.searchsorted(levels, people[name]), len(levels) + 1
        blocks.append(csr_matrix(code[:, None] == np.arange(size), dtype=np.float64))
    data, target = hstack(blocks, format="csr"), np.where(income == ">50K", 1, -1)
    # liblinear estimators reject int64 indices
    data.indices, data.indptr = data.indices.astype(np.int32), data.indptr.astype(np.int32)
    if return_X_y:
        return data, target
    female, male = data[:, [_FEMALE, _MALE]].toarray().T > 0
    about = (_FOLDER / "a9a.md").read_text(encoding="utf-8")
    return Bunch(data=data, target=target, female=female, male=male, DESCR=about)
