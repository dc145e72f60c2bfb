# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module answers, whatever it found to be done."""

import json
import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.modules import scratch

COLLECTIONS = str(Path(scratch.__file__).resolve().parents[2] / ".collections")
STEP = {
    "kind": "file",
    "subject": "/etc/fstab",
    "before": "# \udcff old\n",
    "after": "# \udcff old\nUUID=1 /scratch xfs\n",
}
ANSWER = {"changes": [STEP], "left": None, "seen": [], "problems": []}
PROGRAM = """
from ansible_collections.allreduce.gpu.plugins.modules import scratch
scratch.settle = lambda *_arguments: %r
scratch.main()
"""


def test_a_file_with_bytes_that_are_no_text():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM % ANSWER],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": True, "_ansible_diff": True}}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    answer = json.loads(done.stdout)
    assert json.dumps(answer, ensure_ascii=False).encode()  # Ansible takes no answer that is not UTF-8
    assert answer["changed"] and answer["changes"][0]["before"] == answer["diff"][0]["before"] == "# ? old\n"
