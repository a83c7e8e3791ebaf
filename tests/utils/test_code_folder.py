"""The folder of machine code: its key, its place, and when it is thrown away."""

import os
import pickle
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import numba
import numpy as np
import pytest

import skbandit
from skbandit import GLMUCBPolicy
from skbandit.utils import _code_folder, _compiled
from skbandit.utils._code_folder import (
    UNUSED_DAYS,
    changed_since,
    code_folder,
    is_mixed,
    key_of,
    log_not_kept,
    user_cache,
)
from tests.tiers import first

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


@pytest.fixture
def use(monkeypatch):
    """Keep code in a given folder."""

    def use_folder(folder):
        monkeypatch.setattr(_compiled, "FOLDER", folder)
        monkeypatch.setattr(_compiled, "is_mixed", lambda: False)

    return use_folder


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


class Raising:
    """Its pickle calls a function, which raises unless told otherwise."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


DAMAGES = {
    "empty": lambda old: b"",
    "cut": lambda old: old[:-7],
    "cut in half": lambda old: old[: len(old) // 2],
    "garbage": lambda old: bytes(range(256)),
    "another pickle": lambda old: pickle.dumps({"a": 1}),
    "this version, then another pickle": lambda old: pickle.dumps(numba.__version__) * 2,
    "ValueError": lambda old: pickle.dumps(Raising(int, "x")),
    "ImportError": lambda old: b"cno_such_module\nname\n.",
    "AttributeError": lambda old: b"cos\nno_such_name\n.",
    "zeros": lambda old: bytes(len(old)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", first(1, ["nbi", "nbc"]))
def test_damaged_code_is_compiled_again_and_kept(suffix, damage, use, tmp_path):
    use(tmp_path)
    assert _compiled.compiled(first_of)(np.ones(2)) == 1.0
    (path,) = tmp_path.rglob(f"*.{suffix}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    for hits in (0, 1):
        function = _compiled.compiled(first_of)
        assert function(np.ones(2)) == 1.0
        assert sum(function._dispatcher.stats.cache_hits.values()) == hits


def test_no_changed_byte_goes_unnoticed(tmp_path):
    """numba would load the machine code, and run it."""
    file = _compiled._CacheFile(str(tmp_path), "name", "stamp")
    file.save(("key", 1), b"machine code")
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        for k in range(len(content)):
            flipped = content[k] ^ (1 << k % 8)
            path.write_bytes(content[:k] + bytes([flipped]) + content[k + 1 :])
            with suppress(Exception):
                assert file.load(("key", 1)) in (None, b"machine code")
        path.write_bytes(content)
    assert file.load(("key", 1)) == b"machine code"
    data = tmp_path / "name.1.nbc"
    file.save(("key", 2), b"other code")
    data.write_bytes((tmp_path / "name.2.nbc").read_bytes())
    assert file.load(("key", 1)) is None


posix = pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")


@posix
@pytest.mark.parametrize("place", ["module", "key", "skbandit", "owner", "nobody else"])
def test_code_that_others_may_have_written_is_not_loaded(place, use, tmp_path, monkeypatch):
    folder = code_folder(tmp_path, "0" * 32)
    use(folder)
    assert _compiled.compiled(first_of)(np.ones(2)) == 1.0
    (index,) = folder.rglob("*.nbi")
    planted = pickle.dumps(Raising(os.mkdir, str(tmp_path / "has run")))
    index.write_bytes(planted)
    if place == "owner":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    elif place != "nobody else":
        {"module": index.parent, "key": folder, "skbandit": folder.parent}[place].chmod(0o777)
    assert _compiled.compiled(first_of)(np.ones(2)) == 1.0
    assert (tmp_path / "has run").exists() is (place == "nobody else")
    assert (index.read_bytes() == planted) is not (place == "nobody else")


@posix
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022])
def test_folders_are_made_for_one_user(umask, use, tmp_path):
    before = os.umask(umask)
    try:
        folder = code_folder(tmp_path, "0" * 32)
        use(folder)
        _compiled.compiled(first_of)(np.ones(2))
    finally:
        os.umask(before)
    (index,) = folder.rglob("*.nbi")
    for own in (index.parent, folder, folder.parent):
        assert own.stat().st_mode & 0o777 == 0o700


@posix
@pytest.mark.parametrize(
    ("name", "mode", "used"),
    [
        (".", 0o777, False),
        (".", 0o1777, True),
        (".", 0o755, True),
        ("skbandit", 0o775, False),
        ("skbandit", 0o757, False),
        ("skbandit", 0o755, True),
        ("skbandit/key", 0o720, False),
        ("skbandit/key", 0o702, False),
    ],
)
def test_a_folder_that_others_may_write_to(name, mode, used, tmp_path, caplog):
    log_not_kept.cache_clear()
    assert code_folder(tmp_path, "key") is not None
    (tmp_path / name).chmod(mode)
    for _ in range(2):
        assert (code_folder(tmp_path, "key") is not None) is used
    assert [record.name for record in caplog.records] == ([] if used else ["skbandit"])
    if not used:
        assert "compiles for a minute or two: others may write" in caplog.text


@posix
def test_a_folder_of_another_user(tmp_path, monkeypatch):
    assert code_folder(tmp_path, "key") is not None
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert code_folder(tmp_path, "key") is None
    monkeypatch.delattr(os, "geteuid")  # Windows
    assert code_folder(tmp_path, "key") is not None


@posix
def test_a_link_is_followed_once(tmp_path):
    place = tmp_path / "disk" / "code"
    place.mkdir(parents=True, mode=0o700)
    (tmp_path / "skbandit").symlink_to(place)
    assert code_folder(tmp_path, "key") == place / "key"


def test_code_that_cannot_be_written_is_logged_once(tmp_path, use, caplog):
    log_not_kept.cache_clear()
    (tmp_path / "file").write_text("")
    use(tmp_path / "file")
    for _ in range(2):
        assert _compiled.compiled(first_of)(np.ones(2)) == 1.0
    assert caplog.text.count("Machine code is not kept") == 1


def test_functions_of_one_name_do_not_clash(tmp_path, use):
    """Several modules are called `_kernels`, and their functions may share a line."""
    use(tmp_path)
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
import json, pickle, sys
from pathlib import Path
import numpy as np
policy = pickle.loads(Path(sys.argv[1]).with_name("policy").read_bytes())
assert sys.modules["skbandit"].__file__.startswith(sys.argv[1])
print(json.dumps(policy.decision_function(np.eye(4)).tolist()))
"""


def run_in(target, cache):
    """Scores of the policy with the package installed in `target`."""
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
    policy = GLMUCBPolicy(ucb="U1", mean="M1", random_state=0)
    policy.fit(np.eye(4), [0, 1, 0, 1], reward=[1.0, 0.0, 1.0, 1.0])
    (tmp_path / "policy").write_bytes(pickle.dumps(policy))  # scores alone are compiled anew
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
