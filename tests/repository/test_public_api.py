"""Every public name exists, is typed, and documents each of its parameters with an example."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import skbandit

pytest.importorskip("numpydoc", reason="numpydoc is not installed")
from numpydoc.docscrape import ClassDoc, FunctionDoc


def public_modules():
    """Import the package and every module below it whose path has no underscored part."""
    yield skbandit
    for found in pkgutil.walk_packages(skbandit.__path__, "skbandit."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


MODULES = {module.__name__: module for module in public_modules()}


def public_objects():
    """Map each public function and class, by its first public address, to itself."""
    seen = {}
    for module_name, module in MODULES.items():
        for name in getattr(module, "__all__", []):
            obj = getattr(module, name, None)
            if inspect.isclass(obj) or inspect.isfunction(obj):
                seen.setdefault(obj, f"{module_name}.{name}")
    return {address: obj for obj, address in seen.items()}


OBJECTS = public_objects()


def public_methods():
    """Map the methods that our public classes define, scikit-learn's generated ones left out."""
    methods = {}
    for address, cls in OBJECTS.items():
        if not inspect.isclass(cls):
            continue
        for name, attribute in vars(cls).items():
            function = getattr(attribute, "__func__", attribute)
            if name.startswith("_") or re.fullmatch(r"set_\w+_request", name):
                continue
            if inspect.isfunction(function):
                methods[f"{address}.{name}"] = function
    return methods


CALLABLES = OBJECTS | public_methods()


def parameters(obj):
    """List the parameters that a caller writes."""
    if inspect.isclass(obj) and issubclass(obj, BaseException) and "__init__" not in vars(obj):
        return []  # a plain message, as for every exception
    if getattr(obj, "_is_protocol", False):
        return []  # never made, only followed
    return [p for p in inspect.signature(obj).parameters.values() if p.name not in {"self", "cls"}]


def doc_of(address):
    obj = CALLABLES[address]
    return ClassDoc(obj) if inspect.isclass(obj) else FunctionDoc(obj)


def test_every_module_declares_its_names():
    for name, module in MODULES.items():
        assert module.__doc__, name
        assert len(set(module.__all__)) == len(module.__all__), name
        assert not [public for public in module.__all__ if not hasattr(module, public)], name


def test_dir_lists_public_names_only():
    for name, module in MODULES.items():
        if not module.__all__:  # not for users
            continue
        rooms = {other.removeprefix(f"{name}.") for other in MODULES if other.startswith(name)}
        names = {listed for listed in dir(module) if not listed.startswith("_")}
        assert names - {"annotations"} <= {*module.__all__, *rooms}, name


def test_every_summary_is_one_sentence_on_one_line():
    docs = {address: inspect.getdoc(obj) or "" for address, obj in CALLABLES.items()}
    assert not [address for address, doc in docs.items() if not re.match(r".*\.(\n\n|\Z)", doc)]


def test_every_public_name_has_an_example():
    assert not [address for address in OBJECTS if ">>>" not in str(doc_of(address)["Examples"])]


def test_every_parameter_is_documented():
    wrong = {}
    for address, obj in CALLABLES.items():
        doc = doc_of(address)
        entries = [entry.name for entry in doc["Parameters"] + doc["Other Parameters"]]
        documented = {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}
        wrong[address] = documented ^ {p.name for p in parameters(obj)}
    assert not {address: names for address, names in wrong.items() if names}


def test_every_signature_is_typed():
    untyped = [
        (address, p.name)
        for address, obj in CALLABLES.items()
        for p in parameters(obj)
        if p.annotation is inspect.Parameter.empty
    ]
    functions = [address for address, obj in CALLABLES.items() if inspect.isfunction(obj)]
    assert not untyped
    assert not [name for name in functions if "return" not in CALLABLES[name].__annotations__]


ESTIMATORS = [
    obj for obj in OBJECTS.values() if inspect.isclass(obj) and issubclass(obj, BaseEstimator)
]


def test_documented_signatures_are_the_real_ones():
    """Sphinx shows the first of these methods that Python code defines."""
    for cls in ESTIMATORS:
        methods = (type(cls).__call__, cls.__new__, cls.__init__)
        shown = next(method for method in methods if inspect.isfunction(method))
        assert [*inspect.signature(shown).parameters][1:] == [*inspect.signature(cls).parameters]


def test_mypy_is_shown_every_fit():
    """In typed_calls.py, which mypy checks with the package."""
    calls = Path(__file__).with_name("typed_calls.py").read_text(encoding="utf-8")
    ours = [
        cls.__name__
        for cls in ESTIMATORS
        if getattr(getattr(cls, "fit", None), "__module__", "").startswith("skbandit")
    ]
    assert not [name for name in ours if f"assert_type({name}(" not in calls]


def test_every_documented_error_and_warning_has_a_test():
    """Some file of tests names both what is called and what it raises, or `refuses` and `warns`."""
    tests = [path.read_text("utf-8") for path in (Path(__file__).parents[1]).rglob("test_*.py")]
    untested = []
    for address in CALLABLES:
        doc, name = doc_of(address), address.rpartition(".")[2]
        for section, helper in (("Raises", "refuses("), ("Warns", "warns(")):
            for entry in doc[section]:
                error = entry.type.rpartition(".")[2]
                usual = error in ("ValueError", "UserWarning")
                if not any(
                    name in text and (error in text or (usual and helper in text)) for text in tests
                ):
                    untested.append((address, error))
    assert not untested
