"""Pages, examples, docstrings and messages use the field's words and American spelling."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

NOT_YET_REWRITTEN = (
    # README, guide and how-to, 2026-11-23
    "CONTRIBUTING.md",
    "README.md",
    "docs/coming_from.md",
    "docs/how_to/constraints.md",
    "docs/how_to/cvxpy.md",
    "docs/how_to/fairlearn.md",
    "docs/how_to/policies.md",
    "docs/how_to/reports.md",
    "docs/how_to/selection.md",
    "docs/how_to/service.md",
    "docs/index.md",
    "docs/user_guide/any_learner.md",
    "docs/user_guide/arm_features.md",
    "docs/user_guide/churn.md",
    "docs/user_guide/egregious.md",
    "docs/user_guide/eighty_percent.md",
    "docs/user_guide/index.md",
    "docs/user_guide/judge_policy.md",
    "docs/user_guide/recall.md",
    "docs/user_guide/slates.md",
    "docs/user_guide/tune_policy.md",
    # reference pages and examples, 2026-11-23
    "SECURITY.md",
    "docs/cheat_sheet.md",
    "docs/derivations/constrained.md",
    "docs/derivations/selection.md",
    "docs/extending.md",
    "docs/glossary.md",
    "docs/papers.md",
    "examples/plot_adult_fairness.py",
    "examples/plot_any_learner.py",
    "examples/plot_bandit_tuning.py",
    "examples/plot_churn.py",
    "examples/plot_displays.py",
    "examples/plot_egregious.py",
    "examples/plot_fairness_tradeoff.py",
    "examples/plot_item_context.py",
    "examples/plot_log_to_slate.py",
    "examples/plot_neyman_pearson.py",
    "examples/plot_ramp_bounds.py",
    "examples/plot_regret.py",
    "examples/plot_replay.py",
    "examples/plot_set_selection.py",
    "examples/plot_slate_policy.py",
    "examples/plot_story_report.py",
    "examples/quickstart.py",
    "examples/service/app.py",
    "examples/service/learner.py",
    "examples/service/serve.py",
    # the library, 2026-11-23
    "skbandit/bandit/_arm_keys.py",
    "skbandit/bandit/_events.py",
    "skbandit/bandit/_kernels.py",
    "skbandit/bandit/_natural_parameters.py",
    "skbandit/bandit/_off_policy_classifier.py",
    "skbandit/bandit/_passes.py",
    "skbandit/bandit/_policy.py",
    "skbandit/bandit/_posterior.py",
    "skbandit/bandit/_sequential.py",
    "skbandit/bandit/_state.py",
    "skbandit/bandit/_units.py",
    "skbandit/bandit/oracle/_policy.py",
    "skbandit/bandit/oracle/_reward_models.py",
    "skbandit/bandit/shared/__init__.py",
    "skbandit/bandit/shared/_arm_features.py",
    "skbandit/bandit/shared/_policy.py",
    "skbandit/bandit/shared/_state.py",
    "skbandit/bandit/slates/_models.py",
    "skbandit/bandit/slates/_policy.py",
    "skbandit/constrained/_constrained_threshold.py",
    "skbandit/constrained/_goals.py",
    "skbandit/constrained/_mixins.py",
    "skbandit/constrained/_path.py",
    "skbandit/constrained/_ramp.py",
    "skbandit/constrained/_ramp_cv.py",
    "skbandit/constrained/_reduction.py",
    "skbandit/constrained/_report.py",
    "skbandit/constrained/_tolerances.py",
    "skbandit/constrained/_weighted_fits.py",
    "skbandit/constrained/cross_fitting/_cross_fit.py",
    "skbandit/constrained/cross_fitting/_directions.py",
    "skbandit/constrained/cross_fitting/_folds.py",
    "skbandit/constrained/cross_fitting/_rounds.py",
    "skbandit/constrained/solvers/_augmented_lagrangian.py",
    "skbandit/constrained/solvers/_cutting_plane.py",
    "skbandit/constrained/solvers/_cvxpy.py",
    "skbandit/constrained/solvers/_interface.py",
    "skbandit/constrained/solvers/_polish.py",
    "skbandit/constrained/solvers/_smoothed_newton.py",
    "skbandit/constrained/thresholds/_candidates.py",
    "skbandit/constrained/thresholds/_groups.py",
    "skbandit/constrained/thresholds/_limits.py",
    "skbandit/constrained/thresholds/_multiple_choice.py",
    "skbandit/constrained/thresholds/_multipliers.py",
    "skbandit/constrained/thresholds/_rules.py",
    "skbandit/constrained/training/__init__.py",
    "skbandit/constrained/training/_intercept_kernel.py",
    "skbandit/constrained/training/_mm.py",
    "skbandit/constrained/training/_problem.py",
    "skbandit/constrained/training/_starts.py",
    "skbandit/constrained/training/_train.py",
    "skbandit/datasets/_synthetic.py",
    "skbandit/evaluation/_guaranteed.py",
    "skbandit/evaluation/_off_policy/_sums.py",
    "skbandit/evaluation/_rate_scorer.py",
    "skbandit/evaluation/_replay/_scorer.py",
    "skbandit/inspection/_arm_shares_display.py",
    "skbandit/inspection/_replay_display.py",
    "skbandit/rates/_bind.py",
    "skbandit/rates/_catalog.py",
    "skbandit/rates/_expression.py",
    "skbandit/selection/_ad_features.py",
    "skbandit/selection/_costs.py",
    "skbandit/selection/_m_lowest_kernel.py",
    "skbandit/selection/_mixin.py",
    "skbandit/selection/_regression_selector.py",
    "skbandit/selection/_ridge.py",
    "skbandit/selection/_set_select_classifier.py",
    "skbandit/selection/_stack.py",
    "skbandit/selection/reductions/_registry.py",
    "skbandit/selection/reductions/_rule.py",
    "skbandit/utils/_compiled.py",
    "skbandit/utils/_fitting.py",
    "skbandit/utils/_folds.py",
    "skbandit/utils/_validation.py",
)
"""Files with house words left. It only shrinks: a file that is clean must leave it."""

WORDS = (
    # pattern, the field's word, a sentence that it finds
    (r"processor[ -](seconds|time)", "CPU time", "It takes 3 processor seconds."),
    (r"made (problems?|data|rows|worlds?)", "synthetic data", "It is best on made problems."),
    (r"judg(e|es|ed|ing)", "evaluate, score, estimate", "Each is judged on new rows."),
    (r"(?<!and )answers?", "prediction", "It gets half of the answers wrong."),
    (r"(?<!on )demands?", "constraint", "Every demand is met."),
    (r"promises?", "constraint, guarantee", "The promise must hold on new rows."),
    (r"(a|the|one|each|moved|global|single|per-group) cuts?", "threshold", "Move the cut."),
    (r"what (comes|came|becomes) of", "result, reward, feedback", "It learns what comes of it."),
    (r"(deals?|dealt) (the )?rows", "assign (rows to folds)", "It deals rows to folds."),
    (
        r"(is|are|was|were|be|been) told",
        "use, require, take (an argument)",
        "It is told the group.",
    ),
    (r"(hand|hands|handed|handing) out", "select, choose, return", "It hands out the copies."),
    (r"of our own", "built-in, separate", "It has solvers of our own."),
    (r"beside", "compared with, next to", "It is slow beside a plain fit."),
    (r"rows (fitted|left out)", "training rows, out-of-fold rows", "The rows fitted show less."),
    (r"beliefs?", "posterior", "The beliefs are updated."),
    (r"new people", "new data", "It holds for new people."),
    (r"to be read from it", "Takeaway", "*To be read from it*: little."),
    (r"unasked", "by default", "It keeps a margin, unasked."),
    (r"the prices", "multipliers", "The prices are known then."),
    (r"µs an? \w+", "per event, per row", "It takes 3 µs an event."),
)


def prose_of_page(text):
    """The page without code, addresses and directives."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*$", " ", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.S)
    text = re.sub(r"\]\([^)]*\)|https?://\S+|``.+?``|`[^`]*`", " ", text)
    return " ".join(text.split())


def prose_of_module(text):
    """Its strings: docstrings and messages, without code in them."""
    strings = (
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    )
    text = "\n".join(strings)
    text = re.sub(r"^ *(>>>|\.\.\. ).*$", " ", text, flags=re.M)
    text = re.sub(r"https?://\S+|``.+?``|:\w+:`[^`]*`|`[^`\s]*`", " ", text)
    return " ".join(text.split())


def prose_of_example(text):
    """Strings and comments: the gallery shows both."""
    comments = "\n".join(re.findall(r"^ *# ?(.*)$", text, flags=re.M))
    return prose_of_module(text) + " " + prose_of_page(comments)


def read_texts():
    for pattern, prose in (
        ("*.md", prose_of_page),
        ("docs/**/*.md", prose_of_page),
        ("examples/**/*.py", prose_of_example),
        ("skbandit/**/*.py", prose_of_module),
    ):
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            # A changelog keeps the words of its time.
            made = {"_build", "auto_examples", "generated"} & set(path.parts)
            if not made and name != "CHANGELOG.md":
                yield name, prose(path.read_text(encoding="utf-8"))


def british():
    """Map British spellings to American ones: codespell's dictionary."""
    folder = Path(find_spec("codespell_lib").submodule_search_locations[0])
    lines = (folder / "data" / "dictionary_en-GB_to_en-US.txt").read_text("utf-8").splitlines()
    spelled = dict(line.split("->") for line in lines if "->" in line)
    return {old: new.partition(",")[0] for old, new in spelled.items()}


FOUND_BY = [(re.compile(rf"\b(?:{old})\b", re.I), new) for old, new, _ in WORDS]


def house_words(prose, spellings):
    """Each one found, and the word to use."""
    found = [(hit[0], new) for old, new in FOUND_BY for hit in old.finditer(prose)]
    for word in re.findall(r"[A-Za-z]+", prose):
        if american := spellings.get(word.lower()):
            found.append((word, american))
    return sorted(set(found))


@pytest.mark.parametrize(("pattern", "field", "bad"), WORDS, ids=[word[0] for word in WORDS])
def test_each_pattern_finds_its_sentence(pattern, field, bad):
    for prose in (
        prose_of_page(bad),
        prose_of_module(f'"""{bad}"""'),
        prose_of_module(f'raise ValueError(f"{bad} got {{x}}")'),
        prose_of_example(f"# {bad}"),
    ):
        assert field in [new for _, new in house_words(prose, {})]


def test_code_is_not_prose():
    assert not house_words(prose_of_page("`demand` [x](judge.md)\n```\ncut beside\n```\n"), {})
    assert not house_words(prose_of_module("demand = 1\n'''Use ``demand``.\n\n>>> demand\n'''"), {})


def test_texts_use_the_words_of_the_field():
    pytest.importorskip("codespell_lib")
    spellings = british()
    assert spellings["labeled"] == "labeled"
    found = {name: house_words(prose, spellings) for name, prose in read_texts()}
    assert len(found) > 150 and "README.md" in found
    wrong = [
        f"{name}: {old!r}, say {new}"
        for name, words in found.items()
        for old, new in words
        if name not in NOT_YET_REWRITTEN
    ]
    assert not wrong, "\n".join(wrong)
    clean = [name for name in NOT_YET_REWRITTEN if not found.get(name)]
    assert not clean, f"clean, take them out of NOT_YET_REWRITTEN: {clean}"
