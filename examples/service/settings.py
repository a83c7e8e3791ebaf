"""What the environment sets. A setting that cannot be ends the start with one sentence."""

import logging
import math
import os
from pathlib import Path

FOLDER = Path(os.environ.get("SERVICE_FOLDER", "service_data"))
STATE = "policy.joblib"
N_FEATURES = 2


def read_within(text):
    """Seconds in which a reward must come."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise SystemExit(f"SERVICE_WITHIN is {text!r}: it must be a number of seconds, 0 or more.")
    return seconds


def read_arms(text):
    """Names of arms."""
    arms = [arm.strip() for arm in text.split(",")]
    if not all(arms) or len(set(arms)) < len(arms):
        raise SystemExit(
            f"SERVICE_ARMS is {text!r}: it must name arms, separated by commas, each once."
        )
    return arms


WITHIN = read_within(os.environ.get("SERVICE_WITHIN", "600"))
ARMS = read_arms(os.environ.get("SERVICE_ARMS", "a,b,c"))


def start_log():
    """Write lines with time and process to the standard error."""
    logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s")
    logging.getLogger("service").setLevel(logging.INFO)
