"""Cards and figures of reports: what is said of groups that are blank, weightless or unmeasured."""

import re
import warnings
from itertools import chain

import numpy as np
import pandas as pd
import pytest

from skbandit.evaluation import rate_report, rate_report_blocks, to_model_card
from skbandit.inspection._report_lines import panels_of
from skbandit.rates import difference, each, error_rate, positive_rate, recall
from tests.worlds import warns


def summary(found):
    lines = to_model_card(found).splitlines()
    return lines[lines.index("## Quantitative analysis") + 2]


def test_groups_without_a_value_do_not_hide_those_that_have_one():
    """Every mixture of verdicts of one goal is told, not only the worst."""
    ward = np.repeat(list("abcdef"), 400)
    y, chosen = np.tile([1, 0], 1200), np.tile([1, 0], 1200)
    goal = each(recall, by="ward") >= 0.6

    def card(missed=(), few=(), empty=()):
        label, decided = y.copy(), chosen.copy()
        decided[np.isin(ward, list(missed))] = 0
        label[np.isin(ward, list(empty))] = 0
        rows = ~(np.isin(ward, list(few)) & (np.arange(len(ward)) % 400 >= 4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attributes = {"ward": ward[rows]}
            return summary(rate_report(label[rows], decided[rows], goal, attributes=attributes))

    name = "each(recall, by='ward') >= 0.6 in"
    c = "Not measured: " + name + " 1 of 6 groups or pairs (c)."
    assert card() == "The goal is met."
    assert card(empty="c") == f"Met: {name} 5 of 6 groups or pairs. {c}"
    of_b = f"**Violated**: {name} 1 of 6 groups or pairs."
    assert card(missed="b") == of_b
    assert card(missed="b", empty="c") == f"{of_b} Met: {name} 4 of 6 groups or pairs. {c}"
    of_d = f"Undecided: {name} 1 of 6 groups or pairs (2 rows of d)."
    assert card(few="d", empty="c") == f"{of_d} Met: {name} 4 of 6 groups or pairs. {c}"
    of_both = card(missed="b", few="d", empty="c")
    assert of_both == f"{of_b} {of_d} Met: {name} 3 of 6 groups or pairs. {c}"
    assert card(empty="abcde").endswith("5 of 6 groups or pairs (a, b, c, 2 others).")


def test_the_summary_and_the_figure_name_the_same_pair():
    """The widest gap, not the pair of the fewest rows."""
    sex = np.repeat(["F", "M", "x"], [300, 300, 40])
    shares = {"F": 0.5, "M": 0.38, "x": 0.45}
    chosen = np.zeros(len(sex), dtype=int)
    for name, share in shares.items():
        rows = np.flatnonzero(sex == name)
        chosen[rows[: int(share * len(rows))]] = 1
    goal = {"gap": difference(positive_rate, by="sex") <= 0.1}
    found = rate_report(None, chosen, goal, attributes={"sex": sex})
    assert found["verdict"].eq("undecided").sum() > 1
    assert "(300 rows of F - M)." in summary(found)
    ((lines,),) = panels_of(found).values()
    lines = [line.text for line in lines]
    assert lines == ["gap", "worst: F - M"]


@pytest.mark.parametrize(("blank", "shown"), [("", "(empty)"), (" ", "' '")])
def test_a_blank_group_has_a_name_wherever_it_is_shown(blank, shown):
    origin = np.where(np.arange(400) % 4 == 0, blank, "north")
    y, chosen = np.tile([1, 0], 200), np.tile([1, 1, 0, 0, 1], 80)
    goals = [error_rate(), each(recall, by="origin") >= 0.2]
    goals.append(difference(error_rate, by="origin") <= 0.9)
    found = rate_report(y, chosen, goals, by="origin", attributes={"origin": origin})
    assert blank in found["origin"].tolist(), "values stay as they are"
    card = to_model_card(found, digits=3)
    cells = [line.split("|")[1:3] for line in card.splitlines() if line.startswith("| error_rate")]
    assert sorted(cell.strip() for _, cell in cells) == sorted(["all", shown, "north"])
    lines = [line.text for line in chain(*chain(*panels_of(found, "all").values()))]
    assert lines.count("error_rate()") == 1
    assert {f"{shown}", f"{shown} - north", f"north - {shown}"} <= set(lines)
    with pytest.warns(UserWarning, match=re.escape(f"error_rate() in {shown}")):
        rate_report(y[:40], chosen[:40], error_rate(), by=origin[:40])


def test_a_group_of_weight_0_is_told():
    ward = np.tile(list("abc"), 200)
    chosen, weight = np.tile([1, 0, 1], 200), np.where(ward == "c", 0.0, 1.0)
    rows = {"attributes": {"ward": ward}, "sample_weight": weight}
    told = "All rows of 'c' of 'ward' have the weight 0"
    warns(told, rate_report, None, chosen, positive_rate(), by="ward", **rows)
    warns(told, rate_report, None, chosen, each(positive_rate, by="ward") >= 0.1, **rows)
    table = pd.DataFrame({"ward": ward, "chosen": chosen, "weight": weight})
    columns = {"y_true": None, "y_pred": "chosen", "weight": "weight"}
    warns(told, rate_report_blocks, [table], positive_rate(), by="ward", **columns)
