"""Every public name exists, is typed, and documents each of its parameters with an example."""

import ast
import importlib
import inspect
import pkgutil
import re
from contextlib import suppress
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


@pytest.mark.parametrize("name", MODULES)
def test_module_declares_its_names(name):
    module = MODULES[name]
    assert module.__doc__, f"{name} has no docstring"
    assert hasattr(module, "__all__"), f"{name} does not define __all__"
    assert len(set(module.__all__)) == len(module.__all__)
    missing = [public for public in module.__all__ if not hasattr(module, public)]
    assert not missing, f"{name}.__all__ names what is not there: {missing}"


@pytest.mark.parametrize("address", CALLABLES)
def test_summary(address):
    doc = inspect.getdoc(CALLABLES[address])
    assert doc, f"{address} has no docstring"
    first, _, rest = doc.partition("\n")
    assert first.strip().endswith("."), f"the summary of {address} is not one sentence on one line"
    assert not rest or rest.startswith("\n"), f"the summary of {address} runs over its first line"


@pytest.mark.parametrize("address", OBJECTS)
def test_example(address):
    obj = OBJECTS[address]
    doc = ClassDoc(obj) if inspect.isclass(obj) else FunctionDoc(obj)
    assert any(">>>" in line for line in doc["Examples"]), f"{address} has no example"


@pytest.mark.parametrize("address", CALLABLES)
def test_parameters_are_documented(address):
    obj = CALLABLES[address]
    doc = ClassDoc(obj) if inspect.isclass(obj) else FunctionDoc(obj)
    documented = {
        name.strip().lstrip("*")
        for section in ("Parameters", "Other Parameters")
        for entry in doc[section]
        for name in entry.name.split(",")
    }
    actual = {p.name for p in parameters(obj)}
    assert documented == actual, (
        f"{address}: not documented {sorted(actual - documented)}, "
        f"documented but not there {sorted(documented - actual)}"
    )


@pytest.mark.parametrize("address", CALLABLES)
def test_signature_is_typed(address):
    obj = CALLABLES[address]
    untyped = [p.name for p in parameters(obj) if p.annotation is inspect.Parameter.empty]
    if inspect.isfunction(obj) and "return" not in obj.__annotations__:
        untyped.append("return")
    assert not untyped, f"{address}: no type hint for {untyped}"


ESTIMATORS = {
    address: obj
    for address, obj in OBJECTS.items()
    if inspect.isclass(obj) and issubclass(obj, BaseEstimator)
}


@pytest.mark.parametrize("address", ESTIMATORS)
def test_documented_signature(address):
    """Sphinx shows the first of these methods that Python code defines."""
    cls = ESTIMATORS[address]
    methods = (type(cls).__call__, cls.__new__, cls.__init__)
    shown = next(method for method in methods if inspect.isfunction(method))
    assert list(inspect.signature(shown).parameters)[1:] == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("address", ESTIMATORS)
def test_mypy_is_shown_every_fit(address):
    """In typed_calls.py, which mypy checks with the package."""
    fit = getattr(ESTIMATORS[address], "fit", None)
    if fit is not None and fit.__module__.startswith("skbandit"):
        calls = Path(__file__).with_name("typed_calls.py").read_text(encoding="utf-8")
        assert f"assert_type({ESTIMATORS[address].__name__}(" in calls


def documented():
    """Every public name with what is said of its type; columns and the like have no type."""
    types = {part: "" for address in MODULES for part in address.split(".")}
    for obj in OBJECTS.values():
        methods = dict(inspect.getmembers(obj, inspect.isfunction)) if inspect.isclass(obj) else {}
        for one in [obj, *(method for name, method in methods.items() if name[0] != "_")]:
            doc = FunctionDoc(one)
            for name in [one.__name__, *re.findall(r"`(\w+)`", inspect.getdoc(one) or "")]:
                types.setdefault(name, "")
            for names, kind, _ in doc["Parameters"] + doc["Attributes"]:
                for name in names.split(", "):
                    types[name] = f"{types.get(name, '')} {kind}"
    return types


def test_the_changelog_names_what_there_is():
    """In its newest section; older ones keep the names of their time."""
    newest = (
        (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    )
    types, wrong = documented(), []
    signatures = {
        obj.__name__: inspect.signature(obj).parameters
        for obj in OBJECTS.values()
        if not (inspect.isclass(obj) and issubclass(obj, Exception))
    }
    for code in re.findall(r"`([^`]+)`", newest):
        nodes = []
        with suppress(SyntaxError):  # a command
            nodes = [] if "/" in code else list(ast.walk(ast.parse(code.rstrip("="))))
        named = {
            n.id if isinstance(n, ast.Name) else n.attr
            for n in nodes
            if isinstance(n, ast.Name | ast.Attribute)
        }
        values = {(n.arg, n.value) for n in nodes if isinstance(n, ast.keyword)}
        values |= {(n.targets[0].id, n.value) for n in nodes if isinstance(n, ast.Assign)}
        for call in nodes:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                known = signatures.get(call.func.id, {})
                wrong += [(code, k.arg) for k in call.keywords if k.arg not in known]
        wrong += [
            (code, name) for name in named | {name for name, _ in values} if name not in types
        ]
        for name, value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                said = types.get(name, "")
                if '{"' in said and f'"{value.value}"' not in said:
                    wrong.append((code, value.value))
    assert not wrong
