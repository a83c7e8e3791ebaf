"""scikit-learn's parameter protocol for solvers that are dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self


@dataclass
class ParametersMixin:
    """Give a dataclass scikit-learn's `get_params` and `set_params`.

    So `clone` copies a solver by its parameters, and ``solver__max_iter`` reaches it through
    its classifier. Parameters change by `set_params` only: solving leaves a solver as it was.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Ignored: no parameter has parameters of its own.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, all of them or, if one is invalid, none.

        Parameters
        ----------
        **params : dict
            New values.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is unknown or its value invalid.
        """
        known = self.get_params()
        unknown = [name for name in params if name not in known]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; it takes "
                f"{', '.join(map(repr, known))}."
            )
        checked = replace(self, **params)  # __post_init__ refuses invalid values
        vars(self).update(vars(checked))
        return self
