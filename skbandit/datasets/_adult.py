"""The Adult census data: the table of the UCI repository."""

import os
from io import BytesIO
from typing import Any, Literal

import pandas as pd
from sklearn.utils import Bunch

from skbandit.datasets._files import INCLUDED, DataFile, load_bytes

__all__ = ["fetch_adult", "load_adult"]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"

_ADULT = {
    "train": DataFile(
        folder="adult",
        name="adult.data",
        url=_UCI + "adult.data",
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "test": DataFile(
        folder="adult",
        name="adult.test",
        url=_UCI + "adult.test",
        sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
}

# The publisher's names, with underscores so that `DataFrame.query` takes them.
_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
]
_NUMERIC = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
_TARGET = "income"

_ADULT_DESCR = """\
Adult (Census Income), Becker and Kohavi, UCI Machine Learning Repository, CC BY 4.0.

Who earns more than 50,000 dollars a year? 48,842 people from the US census of 1994, described by
6 numbers and 8 categories; 32,561 of them for training and 16,281 for testing. '?' is a missing
value. The labels are '<=50K' and '>50K'.
"""

Subset = Literal["train", "test", "all"]


def load_adult(
    *,
    subset: Subset = "train",
    return_X_y: bool = False,
    as_frame: bool = True,
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
    return fetch_adult(
        subset=subset,
        data_home=INCLUDED,
        download_if_missing=False,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def fetch_adult(
    *,
    subset: Subset = "train",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Load the Adult census data (classification, 14 mixed features).

    The files are read from a local folder or downloaded once, and checked by hash. The training
    and test tables have the same dtypes: categorical columns have the levels of both files.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The publisher's training rows (32,561), test rows (16,281), or the former followed by the
        latter.
    data_home : path-like, default=None
        The folder to search and to download to; the files are in its subfolder ``adult``, as
        published or compressed with gzip. If None, the folder named by the environment variable
        ``SKBANDIT_DATA`` is searched, then ``skbandit`` inside scikit-learn's data home, which
        also receives downloads.
    download_if_missing : bool, default=True
        Whether to download files that are not found; if False, a missing file is an ``OSError``.
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
    load_adult : The same, from files installed with the package.
    load_a9a : The same people, encoded as 123 binary features.

    Examples
    --------
    If the files are missing and downloads are off, the error names the cure:

    >>> from skbandit.datasets import fetch_adult
    >>> fetch_adult(data_home="no-such-folder", download_if_missing=False)
    Traceback (most recent call last):
        ...
    OSError: adult.data was not found in no-such-folder/adult. Pass download_if_missing=True, or ...

    With the files (not run here, as it needs the network):

    >>> adult = fetch_adult()  # doctest: +SKIP
    >>> adult.data["sex"].value_counts()  # doctest: +SKIP
    """
    parts = parts_of(subset)
    # Read both files: each alone lacks some levels of a categorical column.
    tables = {
        part: _parse_adult(
            load_bytes(file, data_home=data_home, download_if_missing=download_if_missing)
        )
        for part, file in _ADULT.items()
    }
    table = pd.concat(tables)
    levels = table.columns.difference([*_NUMERIC, _TARGET])
    frame = table.astype(dict.fromkeys(levels, "category")).loc[parts].reset_index(drop=True)

    data: Any = frame[_COLUMNS]
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
        DESCR=_ADULT_DESCR,
    )


def parts_of(subset: str) -> list[str]:
    """Names of the files that make up a subset."""
    if subset == "all":
        return list(_ADULT)
    if subset in _ADULT:
        return [subset]
    raise ValueError(f"subset must be 'train', 'test' or 'all', got {subset!r}.")


def _parse_adult(content: bytes) -> pd.DataFrame:
    r"""Parse the published text.

    Examples
    --------
    The test file starts with a comment, and its labels end in a dot:

    >>> line = b"25, ?, 226802, 11th, 7, Divorced, ?, Husband, Black, Male, 0, 0, 40, ?, >50K."
    >>> frame = _parse_adult(b"|1x3 Cross validator\n" + line + b"\n\n")
    >>> frame[["age", "workclass", "sex", "income"]]
       age workclass   sex income
    0   25       NaN  Male   >50K
    """
    frame = pd.read_csv(
        BytesIO(content),
        names=[*_COLUMNS, _TARGET],
        comment="|",
        skipinitialspace=True,
        na_values="?",
        keep_default_na=False,
    )
    frame[_TARGET] = frame[_TARGET].str.removesuffix(".")
    return frame
