"""Figures are drawn without a screen, and closed."""

import sys

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(autouse=True)
def figures():
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    plt.close("all")  # of doctests, which leave theirs open
    yield
    plt.close("all")


class Without:
    """Finds that matplotlib is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def uninstalled():
    """A function that makes matplotlib go missing until the test ends."""
    # Not the monkeypatch fixture: that is undone after figures, which needs matplotlib again.
    with pytest.MonkeyPatch.context() as patch:

        def uninstall():
            for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
                patch.delitem(sys.modules, name)
            patch.setattr(sys, "meta_path", [Without(), *sys.meta_path])

        yield uninstall
