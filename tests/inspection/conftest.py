"""Figures are drawn without a screen, and closed."""

import sys

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(autouse=True)
def figures(monkeypatch):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


class Without:
    """Finds that matplotlib is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def uninstalled(monkeypatch):
    """Called, it makes matplotlib go missing until the test ends."""

    def uninstall():
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [Without(), *sys.meta_path])

    return uninstall
