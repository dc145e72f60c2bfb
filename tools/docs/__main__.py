# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.docs`: write what is generated from the tables; with --check only tell what is stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / ".collections"))

from tools.docs.generate import generated  # noqa: E402 (needs the line above)


def main() -> int:
    """1 when something was stale and only told."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [path for path, text in generated(CHECKOUT).items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path.relative_to(CHECKOUT)}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(generated(CHECKOUT)[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
