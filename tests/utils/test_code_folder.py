"""The folder of machine code: its key, its place, and when it is thrown away."""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import skbandit
from skbandit.utils import _code_folder, _compiled
from skbandit.utils._code_folder import (
    UNUSED_DAYS,
    changed_since,
    code_folder,
    is_mixed,
    key_of,
    user_cache,
)

SOURCES = {
    "__init__.py": "",
    "_kernels.py": "from pkg.links._logistic import step\n",
    "links/__init__.py": "",
    "links/_logistic.py": "CURVATURE = 8.0\n",
}


@pytest.fixture
def package(tmp_path):
    """A small package; `pkg/data` and caches are none of its sources."""
    root = tmp_path / "pkg"
    for name, text in SOURCES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_key_changes_with_any_source(package):
    keys = {key_of(package)}
    for name in SOURCES:
        before = (package / name).read_text()
        (package / name).write_text(before + "# changed\n")
        keys.add(key_of(package))
        (package / name).write_text(before)
    assert key_of(package) in keys
    (package / "links" / "_logistic.py").rename(package / "links" / "_probit.py")
    keys.add(key_of(package))
    assert len(keys) == len(SOURCES) + 2


def test_the_key_is_that_of_the_contents(package, tmp_path):
    key = key_of(package)
    shutil.copytree(package, tmp_path / "elsewhere" / "pkg")
    assert key_of(tmp_path / "elsewhere" / "pkg") == key
    with zipfile.ZipFile(tmp_path / "pkg.zip", "w") as archive:
        for name, text in SOURCES.items():
            archive.writestr(f"pkg/{name}", text)
    assert key_of(zipfile.Path(tmp_path / "pkg.zip", "pkg/")) == key
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "_kernels.py").write_text("left over")
    (package / "notes.txt").write_text("no source")
    os.utime(package / "_kernels.py", (0, 0))
    assert key_of(package) == key


@pytest.mark.parametrize("module", ["numba", "np", "scipy"])
def test_the_key_changes_with_a_version(package, module, monkeypatch):
    key = key_of(package)
    monkeypatch.setattr(getattr(_code_folder, module), "__version__", "0.0")
    assert key_of(package) != key


def test_without_sources_there_is_no_key(tmp_path):
    assert key_of(tmp_path) is None
    assert code_folder(tmp_path, None) is None


def test_the_key_takes_milliseconds():
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        key_of(files("skbandit"))
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 0.05


def test_the_key_in_use_is_that_of_the_sources():
    assert key_of(files("skbandit")) == _code_folder.KEY


def test_code_of_files_that_changed_since_is_not_kept(package):
    begin = max(path.stat().st_ctime for path in package.rglob("*.py"))
    assert not changed_since(package, begin)
    os.utime(package / "links" / "_logistic.py", (0, 0))  # an archive may set any time
    (package / "links" / "_logistic.py").touch()
    assert changed_since(package, begin - 1e-9)


def test_mixed_means_changed_since_the_import(monkeypatch):
    newest = max(path.stat().st_ctime for path in Path(skbandit.__file__).parent.rglob("*.py"))
    monkeypatch.setattr(_code_folder, "IMPORTED", newest)
    assert not is_mixed()
    monkeypatch.setattr(_code_folder, "IMPORTED", newest - 1.0)
    assert is_mixed()
    assert skbandit.utils.IMPORTED < time.time()


def test_mixed_code_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "FOLDER", tmp_path)
    for mixed in (True, False):
        monkeypatch.setattr(_compiled, "is_mixed", lambda mixed=mixed: mixed)
        assert _compiled.compiled(first_of)(np.ones(2)) == 1.0
        assert bool(list(tmp_path.rglob("*.nbc"))) is not mixed


def first_of(values):
    return values[0]


def test_spoilt_code_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "FOLDER", tmp_path)
    monkeypatch.setattr(_compiled, "is_mixed", lambda: False)
    assert _compiled.compiled(first_of)(np.ones(2)) == 1.0
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:10])
    assert _compiled.compiled(first_of)(np.ones(2)) == 1.0


def test_functions_of_one_name_do_not_clash(tmp_path, monkeypatch):
    """Several modules are called `_kernels`, and their functions may share a line."""
    monkeypatch.setattr(_compiled, "FOLDER", tmp_path)
    monkeypatch.setattr(_compiled, "is_mixed", lambda: False)
    scope = {"np": np}
    results = []
    for module, value in [("a._kernels", 1.0), ("b._kernels", 2.0)]:
        exec(compile(f"def same(x):\n    return x + {value}\n", __file__, "exec"), scope)
        scope["same"].__module__ = module
        results.append(_compiled.compiled(scope["same"])(0.0))
    assert results == [1.0, 2.0]
    assert len({path.parent for path in tmp_path.rglob("*.nbi")}) == 2


def test_old_folders_go_when_a_new_one_is_made(tmp_path):
    def folder_used(days_ago, name):
        path = tmp_path / "skbandit" / name
        (path / "module").mkdir(parents=True)
        moment = time.time() - days_ago * 24 * 3600
        os.utime(path, (moment, moment))
        return path

    current = "0" * 32
    recent = folder_used(UNUSED_DAYS - 1, "1" * 32)
    old = folder_used(UNUSED_DAYS + 1, "2" * 32)
    foreign = folder_used(UNUSED_DAYS + 1, "photographs")
    assert code_folder(tmp_path, current) == tmp_path / "skbandit" / current
    assert recent.exists() and foreign.exists() and not old.exists()
    late = folder_used(UNUSED_DAYS + 1, "3" * 32)
    os.utime(tmp_path / "skbandit" / current, (0, 0))
    assert code_folder(tmp_path, current) is not None  # not new: nothing is examined
    assert late.exists()
    used = (tmp_path / "skbandit" / current).stat().st_mtime
    assert used == pytest.approx(time.time(), abs=60)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert code_folder(tmp_path / "file", "0" * 32) is None
    assert code_folder(None, "0" * 32) is None


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x"),
        ("linux", {"HOME": "/h"}, "/h/.cache"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "relative"}, "/h/.cache"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("win32", {}, None),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="the paths are those of POSIX")
def test_the_folder_for_caches(platform, environment, expected, monkeypatch):
    monkeypatch.setattr(_code_folder.numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(_code_folder.sys, "platform", platform)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert user_cache() == (None if expected is None else Path(expected))
    monkeypatch.setattr(_code_folder.numba.config, "CACHE_DIR", "/numba")
    assert user_cache() == Path("/numba")


STEP = """
import json, sys
import numpy as np
from skbandit import GLMUCBPolicy
from skbandit.bandit.links import logistic
policy = GLMUCBPolicy(ucb="U1", mean="M1", random_state=0)
X, actions = np.eye(4), [0, 1, 0, 1]
policy.fit(X, actions, reward=[1.0, 0.0, 1.0, 1.0])
assert sys.modules["skbandit"].__file__.startswith(sys.argv[1])
print(json.dumps(policy.decision_function(X).tolist()))
"""


def run_in(target, cache):
    """Scores of a policy with the package installed in `target`."""
    environment = os.environ | {"PYTHONPATH": str(target), "NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run(
        [sys.executable, "-c", STEP, str(target)],
        cwd=target, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.thorough
def test_an_upgrade_leaves_no_old_code_in_use(tmp_path):
    """A constant changes in a callee, in a file that its callers only import."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    root = Path(skbandit.__file__).parents[1]
    target, cache = tmp_path / "site", tmp_path / "cache"
    outputs = []
    for version in ("old", "new"):
        source = tmp_path / version
        shutil.copytree(
            root, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "docs", "tests")
        )
        if version == "new":
            path = source / "skbandit" / "bandit" / "links" / "_logistic.py"
            text = path.read_text()
            assert "math.pi * v / 8.0" in text
            path.write_text(text.replace("math.pi * v / 8.0", "math.pi * v / 2.0"))
        subprocess.run(
            [sys.executable, "-c", "from hatchling import build; build.build_wheel('dist')"],
            cwd=source, check=True, capture_output=True,
        )  # fmt: skip
        (wheel,) = (source / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
            recorded = set(archive.namelist())
        outputs.append(run_in(target, cache))
    assert outputs[1] == run_in(target, tmp_path / "cold")
    assert outputs[1] != outputs[0]
    # an installer removes what it recorded, and the bytecode of its modules
    left = {name for name in files_in(target) - recorded if not name.endswith(".pyc")}
    assert not left
