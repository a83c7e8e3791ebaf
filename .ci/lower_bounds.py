"""Print the oldest supported version of each dependency, optional ones too, for pip.

python .ci/lower_bounds.py > constraints.txt
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def lower_bounds(requirements: list[str]) -> list[str]:
    """Turn each "name>=version" into "name==version"; that is the only form we write."""
    pinned = []
    for requirement in requirements:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)(\[[a-z,]+\])?>=([0-9.]+)", requirement)
        if match is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} is not name>=version")
        pinned.append(f"{match[1]}=={match[3]}")
    return pinned


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    used = [*project["dependencies"], *optional["plot"], *optional["scale"]]
    print("\n".join(lower_bounds(used)))
