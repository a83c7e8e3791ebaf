"""Packages that the library does without until a function needs one."""

from __future__ import annotations

import importlib
from typing import Any


def import_optional(module: str, asked_by: str) -> Any:
    """Import a module; where its package is not installed, say who needs it and the cure."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:  # installed, but something that it needs is not
            raise
        raise ImportError(f"{asked_by} needs {package}: pip install {package}") from error
