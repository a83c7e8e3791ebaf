"""Change single expressions of the package, and count how many of the changes its tests notice.

python -m benchmarks.mutants --draws 20 --room rates

Lines are drawn over all rooms, or over one, with a fixed seed; each gets one change. A room's
mutants are run against its own tests, default tier, in one process each.
"""

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def change(node):
    """Change an expression or statement in place; return whether it can be changed."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        node.ops[0] = OTHER[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER:
        if isinstance(getattr(getattr(node, "left", None), "value", None), str):
            return False
        node.op = OTHER[type(node.op)]()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value += 1
    elif isinstance(node, ast.If):
        node.test = ast.copy_location(ast.Constant(False), node.test)
    elif isinstance(node, ast.IfExp):
        node.test = ast.copy_location(ast.Constant(False), node.test)
    else:
        return False
    return True


def in_functions(tree):
    """Nodes in the bodies of functions that are not compiled."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        decorators = " ".join(map(ast.unparse, function.decorator_list))
        if "compiled" in decorators or "exactly" in decorators:
            continue
        for statement in function.body:
            yield from ast.walk(statement)


def drawn(rooms, n_draws, seed):
    """Yield file, line, what was changed, and the changed text, for lines drawn uniformly."""
    rng = random.Random(seed)
    paths = sorted(p for p in (ROOT / "skbandit").rglob("*.py") if "kernel" not in p.name)
    paths = [p for p in paths if room_of(p) in rooms]
    trees = {path: ast.parse(path.read_text("utf-8")) for path in paths}
    places = sorted(
        {
            (path, node.lineno)
            for path in paths
            for node in in_functions(copy.deepcopy(trees[path]))
            if change(node)
        }
    )
    for path, line in rng.sample(places, min(n_draws, len(places))):
        tree = copy.deepcopy(trees[path])
        nodes = [
            n for n in in_functions(tree)
            if getattr(n, "lineno", 0) == line and change(copy.deepcopy(n))
        ]  # fmt: skip
        node = rng.choice(nodes)
        before = ast.unparse(node).partition("\n")[0]
        change(node)
        yield (
            path,
            line,
            f"{before} -> {ast.unparse(node).partition(chr(10))[0]}",
            ast.unparse(tree),
        )


def room_of(path):
    """The folder below the package."""
    parts = path.relative_to(ROOT / "skbandit").parts
    return parts[0] if len(parts) > 1 else ""


def is_killed(folder, path, text, seconds):
    """Run the tests of the room of a changed file; a time-out is a kill, as of an endless loop."""
    place = folder / path.relative_to(ROOT)
    original = place.read_text("utf-8")
    place.write_text(text, "utf-8")
    tests = [f"tests/{room_of(path)}", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *tests],
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=seconds,
        )
        return run.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_text(original, "utf-8")


def main():
    """Print a line per survivor, and a table of rooms."""
    rooms = sorted(p.name for p in (ROOT / "skbandit").iterdir() if (p / "__init__.py").exists())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--room", choices=rooms)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900, help="after which a run is ended")
    options = parser.parse_args()
    killed, made = Counter(), Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (
            "skbandit",
            "tests",
            "benchmarks",
            "conftest.py",
            "pyproject.toml",
            "setup.cfg",
        ):
            subprocess.run(["cp", "-r", str(ROOT / part), name], check=True)
        wanted = {options.room} if options.room else set(rooms)
        for path, line, what, text in drawn(wanted, options.draws, options.seed):
            room = room_of(path)
            made[room] += 1
            dead = is_killed(folder, path, text, options.seconds)
            killed[room] += dead
            verdict = "killed" if dead else "SURVIVES"
            print(f"{path.relative_to(ROOT)}:{line} {what[:80]}: {verdict}", flush=True)
    print("\n| room | killed of drawn |\n|---|---|")
    for room in sorted(made):
        print(f"| {room} | {killed[room]} of {made[room]} |")


if __name__ == "__main__":
    main()
