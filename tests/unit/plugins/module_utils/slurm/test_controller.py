# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sinfo says of the nodes, and commands that fail or hang."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm import controller
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm.decision import Seen

SAID = """\
gpu-1               |idle|Unknown|none
gpu-1|idle|Unknown|none
gpu-2|drained|1796000000|allreduce: xid GPU1: reboot
gpu-3|draining|1796000001|fan | 3
gpu-4|down*|2026-11-28T20:00:00|Not responding

slurm_load_partitions: a line that is none
"""


def test_what_sinfo_says():
    assert controller.parse(SAID) == {
        "gpu-1": Seen("idle", "", None),
        "gpu-2": Seen("drained", "allreduce: xid GPU1: reboot", 1796000000),
        "gpu-3": Seen("draining", "fan | 3", 1796000001),
        "gpu-4": Seen("down*", "Not responding", None),
    }


@pytest.mark.parametrize(("command", "words"), [
    (["no-such-program"], "no-such-program: "), (["sh", "-c", "echo broken >&2; exit 1"], "sh: broken"), (["sleep", "9"], "timed out"),
])  # fmt: skip
def test_what_fails_is_refused_in_time(monkeypatch, command, words):
    monkeypatch.setattr(controller, "SECONDS", 0.2)
    with pytest.raises(controller.RefusedError, match=words):
        controller.run(command)
