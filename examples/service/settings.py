"""What the environment sets. A setting that cannot be ends the start with one sentence."""

import logging
import math
import os
from pathlib import Path

STATE = "policy.joblib"
FIRST_ARMS, N_FEATURES = ["a", "b", "c"], 2
"""Arms and number of features of the service without a saved policy."""


def read_folder(text):
    """Folder of the database and the state, which need not be there yet."""
    folder = Path(text)
    if not text.strip() or (folder.exists() and not folder.is_dir()):
        raise SystemExit(f"SERVICE_FOLDER is {text!r}: it must be the path of a folder.")
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise SystemExit(f"SERVICE_FOLDER is {text!r}: this process may not write there.")
    return folder


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
    """Names of arms; None takes those of the policy."""
    if text is None:
        return None
    arms = [arm.strip() for arm in text.split(",")]
    if not all(arms) or len(set(arms)) < len(arms):
        raise SystemExit(
            f"SERVICE_ARMS is {text!r}: it must name arms, separated by commas, each once."
        )
    return arms


FOLDER = read_folder(os.environ.get("SERVICE_FOLDER", "service_data"))
WITHIN = read_within(os.environ.get("SERVICE_WITHIN", "600"))
NAMED_ARMS = read_arms(os.environ.get("SERVICE_ARMS"))


def start_log():
    """Write lines with time and process to the standard error."""
    logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s")
    logging.getLogger("service").setLevel(logging.INFO)
