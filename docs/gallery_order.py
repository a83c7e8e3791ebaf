"""The order of the examples in the gallery."""

# By subject: the quickstart, goals, sets, policies.
EXAMPLES = [
    "quickstart.py",
    "plot_story_report.py",
    "plot_neyman_pearson.py",
    "plot_adult_fairness.py",
    "plot_egregious.py",
    "plot_any_learner.py",
    "plot_review.py",
    "plot_fairness_tradeoff.py",
    "plot_churn.py",
    "plot_ramp_bounds.py",
    "plot_displays.py",
    "plot_set_selection.py",
    "plot_log_to_slate.py",
    "plot_slate_policy.py",
    "plot_replay.py",
    "plot_bandit_tuning.py",
    "plot_arm_features.py",
    "plot_item_context.py",
    "plot_better_policy.py",
    "plot_coupons.py",
    "plot_bandit_figures.py",
    "plot_regret.py",
]


def place_in_gallery(name: str) -> tuple[int, str]:
    """Order of an example; those without a place come last."""
    return (EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES), name)
