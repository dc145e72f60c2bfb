# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node as what torchrun starts for each rank: names the logs after the rank, then becomes the script.

torchrun names its logs after the local rank of an attempt; only a started rank knows which rank of the run it is.
The script replaces this process, so that it runs exactly as under torchrun itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

LOGS = Path(__file__).absolute().parent / "logs"


def main(script: str, args: list[str]) -> None:
    """Redirect the output, leave a note, become the script."""
    rank = int(os.environ["RANK"])
    for stream, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(LOGS / f"rank{rank}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640), descriptor)
    note = {
        "rank": rank,
        "local_rank": int(os.environ["LOCAL_RANK"]),
        "world_size": int(os.environ["WORLD_SIZE"]),
        "attempt": int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")),
        "started": time.time(),
    }
    new = LOGS / f"rank{rank}.new"
    new.write_text(json.dumps(note), encoding="utf-8")
    new.replace(new.with_suffix(".json"))
    os.execv(sys.executable, [sys.executable, "-u", script, *args])  # noqa: S606 - becoming the script is the purpose


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
