# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that applies at boot what was declared."""

import json

from ansible_collections.allreduce.gpu.plugins.module_utils.settings import tuning_program
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import server

DECLARED = {
    "values": [{"path": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", "value": "performance"}],
    "interfaces": ["ens1"],
}
GOVERNOR = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"


def machine(tmp_path):
    return tree(tmp_path, {**server(), tuning_program.DECLARATION: json.dumps(DECLARED)})


def test_what_was_declared_is_applied(tmp_path, capsys):
    made = machine(tmp_path)
    assert tuning_program.main([], made) is None
    assert (made.text(GOVERNOR), made.text("/proc/irq/120/smp_affinity_list")) == ("performance", "2-3")
    assert capsys.readouterr().out.count("\n") == 5
    assert tuning_program.main([], made) is None
    assert capsys.readouterr().out == ""


def test_check_only_tells(tmp_path, capsys):
    made = machine(tmp_path)
    assert tuning_program.main(["--check"], made) is None
    assert made.text(GOVERNOR) == "schedutil"
    assert GOVERNOR + ": schedutil -> performance" in capsys.readouterr().out


def test_one_refusal_does_not_keep_others_from_theirs(tmp_path):
    made = machine(tmp_path)
    tree(tmp_path, {"/proc/irq/120/effective_affinity_list": "0"})
    (tmp_path / "proc/irq/120/smp_affinity_list").unlink()
    (tmp_path / "proc/irq/120/smp_affinity_list").symlink_to("/proc/version")
    assert "does not take 2-3" in tuning_program.main([], made)
    assert made.text(GOVERNOR) == "performance"


def test_without_a_declaration_or_with_other_words_it_says_so(tmp_path):
    assert "tuning.json cannot be applied" in tuning_program.main([], tree(tmp_path, {}))
    assert "usage" in tuning_program.main(["--what"])
