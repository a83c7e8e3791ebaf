"""Change single expressions of the package, and count how many of the changes its tests notice.

python -m benchmarks.mutants --draws 200 --keep

Lines are drawn over all rooms, or over one, with a fixed seed; each gets one change. The default
tier runs once, and records which test runs which line. A changed function then runs in a process
of its own with the tests of its line, the fastest first, until one fails. Kept mutants are drawn
again where their line still stands, so that two runs compare. Needs Python 3.12 or newer.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import os
import pickle
import random
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks._kept import RESULTS, keep

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skbandit"
SECONDS = 10.0
"""CPU seconds of tests that a mutant has to survive."""
OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass
class Mutant:
    """One changed expression; `text` is its line, by which it is known in another version."""

    room: str
    file: str
    line: int
    function: str
    text: str
    change: str
    verdict: str = ""
    test: str = ""
    code: types.CodeType | None = field(default=None, repr=False)


def change(node: ast.AST) -> bool:
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
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.copy_location(ast.Constant(False), node.test)
    else:
        return False
    return True


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the outermost functions that are not compiled, with their qualified names."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if "compiled" not in decorators and "exactly" not in decorators:
                yield prefix + node.name, node


def mutable_nodes(function: ast.FunctionDef) -> list[ast.AST]:
    """List what can be changed in the body of a function; annotations and defaults stay."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    return [node for node in nodes if change(copy.deepcopy(node)) and hasattr(node, "lineno")]


def compiled_code(module: types.CodeType, name: str, line: int) -> types.CodeType:
    """Find the code of a function in that of its module."""
    nested = [code for code in module.co_consts if isinstance(code, types.CodeType)]
    for code in nested:
        if code.co_qualname == name and code.co_firstlineno == line:
            return code
        if name.startswith(code.co_qualname + "."):
            return compiled_code(code, name, line)
    raise LookupError(name)


class Source:
    """A file of the package, and the places where it can be changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text("utf-8"))
        self.lines = path.read_text("utf-8").splitlines()
        self.places = sorted(
            {
                (node.lineno, name)
                for name, function in functions(self.tree.body)
                for node in mutable_nodes(function)
            }
        )

    def mutants(self, line: int, name: str) -> Iterator[Mutant]:
        """Yield each change of a line."""
        for k in range(len(mutable_nodes(self.function(self.tree, line, name)))):
            tree = copy.deepcopy(self.tree)
            function = self.function(tree, line, name)
            node = mutable_nodes(function)[k]
            if node.lineno != line:
                continue
            before = ast.unparse(node)
            change(node)
            short = " -> ".join(
                text.partition("\n")[0][:60] for text in (before, ast.unparse(node))
            )
            parts = self.path.relative_to(PACKAGE).parts
            first = min(node.lineno for node in [function, *function.decorator_list])
            module = compile(tree, str(self.path), "exec")
            yield Mutant(
                parts[0], "/".join(parts), line, name, self.lines[line - 1].strip(), short,
                code=compiled_code(module, name, first),
            )  # fmt: skip

    @staticmethod
    def function(tree: ast.Module, line: int, name: str) -> ast.FunctionDef:
        """Find the function of a place; a getter and its setter have one name."""
        return next(
            function
            for qualified, function in functions(tree.body)
            if qualified == name and function.lineno <= line <= (function.end_lineno or 0)
        )


def drawn(rooms: set[str], n_draws: int, seed: int, like: list[Mutant] = ()) -> list[Mutant]:
    """Draw mutants by lines: first those of another version that still stand, then new ones."""
    rng = random.Random(seed)
    paths = sorted(p for p in PACKAGE.rglob("*.py") if "kernel" not in p.name)
    sources = {"/".join(p.relative_to(PACKAGE).parts): Source(p) for p in paths}
    sources = {
        file: source
        for file, source in sources.items()
        if "/" in file and file.split("/")[0] in rooms
    }
    mutants = []
    for old in like:
        source = sources.get(old.file)
        for line, name in source.places if source else ():
            if name == old.function and source.lines[line - 1].strip() == old.text:
                mutants += [m for m in source.mutants(line, name) if m.change == old.change][:1]
                break
    places = [(file, *place) for file, source in sources.items() for place in source.places]
    rng.shuffle(places)
    for file, line, name in places:
        if len(mutants) >= n_draws:
            break
        mutants.append(rng.choice(list(sources[file].mutants(line, name))))
    return mutants


def in_a_fork(work: Callable[[], Any], seconds: int) -> Any:
    """Return what a function returns in a copy of this process, or None if it does not end."""
    reader, writer = os.pipe()
    if process := os.fork():
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        os.waitpid(process, 0)
        return pickle.loads(data) if data else None
    try:
        os.setpgid(0, 0)
        signal.alarm(seconds)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(work(), pipe)
    finally:
        os._exit(0)


class Recorder:
    """Which lines of the package each test runs, its CPU seconds, and whether it fails."""

    TOOL = 3

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()
        self.tests: dict[str, tuple[set[tuple[str, int]], float]] = {}
        self.failed: set[str] = set()
        self.begin = len(str(PACKAGE)) + 1
        monitoring = sys.monitoring
        monitoring.use_tool_id(self.TOOL, "mutants")
        monitoring.register_callback(self.TOOL, monitoring.events.LINE, self.line)
        monitoring.set_events(self.TOOL, monitoring.events.LINE)

    def line(self, code: types.CodeType, number: int) -> object:
        """Note a line once per test."""
        if code.co_filename.startswith(str(PACKAGE)):
            self.lines.add((code.co_filename[self.begin :], number))
        return sys.monitoring.DISABLE

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run a test with its own record."""
        self.lines = set()
        sys.monitoring.restart_events()
        start = time.process_time()
        result = yield
        self.tests[item.nodeid] = (self.lines, time.process_time() - start)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.failed.add(report.nodeid)


class Trials:
    """Replaces pytest's loop: run all tests once, then those of each mutant."""

    def __init__(self, mutants: list[Mutant], record: Path | None) -> None:
        self.mutants = mutants
        self.record = record

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Print a line per mutant."""
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        if self.record and self.record.exists():
            tests, failed = pickle.loads(self.record.read_bytes())
        else:
            tests, failed = in_a_fork(lambda: self.run(session.items, Recorder()), 7200)
            if self.record:
                self.record.write_bytes(pickle.dumps((tests, failed)))
        print(f"\n{len(tests)} tests, {len(failed)} fail without a mutant", flush=True)
        gc.unfreeze()
        for mutant in self.mutants:
            names = [
                name
                for name, (lines, _) in tests.items()
                if (mutant.file, mutant.line) in lines and name in self.items
            ]
            names.sort(key=lambda name: tests[name][1])
            self.judge(mutant, [self.items[name] for name in names if name not in failed])
            print(f"{mutant.file}:{mutant.line} {mutant.change}: {mutant.verdict}", flush=True)
        return True

    def run(self, items: list[pytest.Item], recorder: Recorder) -> tuple[Any, set[str]]:
        """Run tests, and record them."""
        self.session.config.pluginmanager.register(recorder)
        self.in_turn(items, lambda: False)
        return recorder.tests, recorder.failed

    def in_turn(self, items: list[pytest.Item], is_over: Callable[[], bool]) -> None:
        """Run tests until it is over."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if is_over():
                break

    def judge(self, mutant: Mutant, items: list[pytest.Item]) -> None:
        """Write the verdict; a time-out is a kill, as of an endless loop."""
        mutant.verdict = "lives" if items else "no test"
        while items:
            outcome = in_a_fork(partial(self.first_failure, mutant.code, items), 300)
            failures = ["no end"] if outcome is None else outcome
            if not failures:
                return
            mutant.verdict, (mutant.test,) = "killed", failures
            if mutant.test == "no end":
                return
            killer = self.items[mutant.test]
            if not in_a_fork(partial(self.first_failure, None, [killer]), 300):
                return
            items = [item for item in items if item is not killer]  # it fails alone, too
            mutant.verdict, mutant.test = "lives", ""

    def first_failure(self, code: types.CodeType | None, items: list[pytest.Item]) -> list[str]:
        """Name the first test that fails with other code."""
        if code is not None:
            replace(code)
        failures: list[str] = []

        class Watch:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed:
                    failures.append(report.nodeid)

        self.session.config.pluginmanager.register(Watch())
        start = time.process_time()
        self.in_turn(items, lambda: bool(failures) or time.process_time() - start > SECONDS)
        return failures[:1]


def replace(code: types.CodeType) -> None:
    """Give the functions of a code's place that code."""
    place = (code.co_filename, code.co_qualname, code.co_firstlineno)
    for value in gc.get_objects():
        if isinstance(value, types.FunctionType):
            old = value.__code__
            if (old.co_filename, old.co_qualname, old.co_firstlineno) == place:
                value.__code__ = code


def table(mutants: list[dict[str, Any]]) -> str:
    """Count per room, as Markdown."""
    frame = pd.DataFrame(mutants)
    died = (frame["verdict"] == "killed").groupby(frame["room"]).agg(["sum", "count"])
    rows = [f"| {room} | {killed} of {n} |" for room, killed, n in died.itertuples()]
    rows.append(f"| all | {died['sum'].sum()} of {died['count'].sum()} |")
    return "\n".join(["| room | killed of drawn |", "|---|---|", *rows])


def main() -> None:
    """Print a line per mutant, and a table of rooms."""
    rooms = sorted(p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--room", choices=rooms)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="file that keeps which test runs which line")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/mutants.csv")
    options = parser.parse_args()
    start = time.process_time()
    like = []
    if (RESULTS / "mutants.csv").exists():
        kept = pd.read_csv(RESULTS / "mutants.csv", keep_default_na=False)
        like = [Mutant(**row) for row in kept.to_dict("records")]
    wanted = {options.room} if options.room else set(rooms)
    mutants = drawn(wanted, options.draws, options.seed, like)
    folders = ["tests", "skbandit", "docs"] if not options.room else [f"tests/{options.room}"]
    pytest.main(
        ["-n", "0", "-p", "no:cacheprovider", "-p", "no:terminal", *folders],
        plugins=[Trials(mutants, options.record)],
    )
    rows = [{k: v for k, v in asdict(m).items() if k != "code"} for m in mutants]
    print(f"\n{table(rows)}")
    if options.keep:
        keep("mutants", pd.DataFrame(rows), time.process_time() - start, seed=options.seed)


if __name__ == "__main__":
    main()
