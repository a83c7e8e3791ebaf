"""What a missing optional package says."""

import sys

import pytest

from skbandit.utils._sklearn_compat import import_optional


def test_an_installed_module_is_imported():
    assert import_optional("json.decoder", "This").JSONDecoder is not None


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part"])
def test_a_missing_package_is_named_with_its_cure(module):
    with pytest.raises(
        ImportError, match="This needs no_such_package: pip install no_such_package"
    ):
        import_optional(module, "This")


def test_a_package_that_breaks_by_itself_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        import_optional("half_installed", "This")
    assert "pip install half_installed" not in str(caught.value)
    assert "half_installed" not in sys.modules
