"""Print the section of CHANGELOG.md on one version, for the page of the release.

python .ci/release_notes.py 0.1.0 > notes.md
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import absolute_links  # noqa: E402  a relative link would lead nowhere there


def section(changelog: str, version: str) -> str:
    """Cut out what is between the heading of the version and the next one."""
    heading = rf"^## {re.escape(version)} \((?:\d{{4}}-\d\d-\d\d|unreleased)\)\n"
    found = re.search(rf"{heading}(.*?)(?=^## |\Z)", changelog, flags=re.M | re.S)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no section '## {version} (year-month-day)'")
    return found[1].strip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    notes = section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), sys.argv[1])
    print(absolute_links(notes, sys.argv[1]), end="")
