"""Optional packages, imported when a function needs them."""

from __future__ import annotations

import importlib
from typing import Any


def import_optional(module: str, needed_by: str) -> Any:
    """Import a module, or raise an error that names who needs its package and how to install it."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:  # the package is installed, but one of its dependencies is not
            raise
        raise ImportError(f"{needed_by} needs {package}: pip install {package}") from error
