"""Whose an error is: one of ours, or that of whatever was called with input nobody checked."""

import linecache
import traceback
from pathlib import Path

import sklearn

import skbandit

OURS, SKLEARN = (str(Path(package.__file__).parent) for package in (skbandit, sklearn))


def blame(error):
    """What users would find wrong with an error; nothing if it is one of ours.

    Ours is raised by a statement of this package, or inside scikit-learn, whose validation and
    whose estimators the package calls with what users give.
    """
    # scikit-learn's own validation says OverflowError of an int that is no float
    if not isinstance(error, ValueError | TypeError | OSError | OverflowError):
        return f"{type(error).__name__} is not documented"
    if not str(error).strip():
        return "has no message"
    places = [
        (frame.f_code.co_filename, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
    ]
    last = max((k for k, (file, _) in enumerate(places) if file.startswith(OURS)), default=None)
    if last is None:
        return "does not come from the package"
    file, number = places[last]
    if last + 1 < len(places):
        callee = places[last + 1][0]
        return "" if callee.startswith(SKLEARN) else f"{file}:{number} let {callee} raise it"
    statement = linecache.getline(file, number).strip()
    return "" if statement.startswith("raise") else f"{file}:{number} raised it by {statement!r}"
