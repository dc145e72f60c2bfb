# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checkout takes nothing over from one that was at the same place before; in a network namespace of the test's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import subprocess
import sys
from pathlib import Path

from tests.lab import leftovers, network, paths

paths.LAB, paths.RUN = Path(sys.argv[1]) / "lab", Path(sys.argv[1]) / "run"
paths.NAMESPACE = paths.RUN / "mnt"
if sys.argv[2] == "lab":
    paths.LAB.mkdir()
paths.RUN.mkdir()
subprocess.run(["ip", "link", "add", network.BRIDGE, "type", "bridge"], check=True)
assert network.bridge_exists()
leftovers.clear_when_orphaned()
print("bridge" if network.bridge_exists() else "no bridge", "run" if paths.RUN.exists() else "no run")
"""


@pytest.mark.parametrize(("lab", "left"), [("lab", "bridge run"), ("none", "no bridge no run")])
def test_what_a_removed_checkout_left_is_cleared(tmp_path, lab, left):
    own = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", PROGRAM, str(tmp_path), lab]
    done = subprocess.run(own, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == left
