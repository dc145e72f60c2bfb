# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that applies at boot what was declared."""

import json

from ansible_collections.allreduce.gpu.plugins.module_utils.settings import (
    tuning,
    tuning_plan,
    tuning_program,
    tuning_record,
)
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


OTHER_BOOT = "0e4b0e7d-8f0b-4f1e-9f0e-1b2c3d4e5f60\n"
IRQ = "/proc/irq/120/smp_affinity_list"


def settle(made, **wanted):
    return tuning.settle(tuning.Machine(made, tuning_program.replace), dict(tuning_plan.NOTHING, **wanted))


def reboot(tmp_path, irq):
    """The kernel begins anew: its own choice for interrupts and processors."""
    return tree(tmp_path, {"/proc/sys/kernel/random/boot_id": OTHER_BOOT, IRQ: irq, GOVERNOR: "schedutil\n"})


def test_what_this_boot_gave_to_interrupts_is_put_back(tmp_path):
    made = machine(tmp_path)
    settle(made, **DECLARED)
    assert tuning_record.load(made)["values"][IRQ] == "0"
    reboot(tmp_path, "1\n")
    assert tuning_program.main([], made) is None
    assert (made.text(IRQ), made.text(GOVERNOR)) == ("2-3", "performance")
    assert (tmp_path / tuning_record.PATH[1:]).stat().st_mode & 0o777 == 0o600
    assert settle(made, **DECLARED)["changed"] is False
    settle(made)
    assert (made.text(IRQ), made.text(GOVERNOR)) == ("1", "schedutil")
    assert not made.exists(tuning_record.PATH)


def test_after_a_reboot_the_kernels_own_choice_is_what_was_before(tmp_path):
    """Interrupts have other numbers then; nothing is written to them."""
    made = machine(tmp_path)
    settle(made, **DECLARED)
    reboot(tmp_path, "1\n")
    assert IRQ not in [step["subject"] for step in settle(made)["changes"]]
    assert (made.text(IRQ), made.text(GOVERNOR)) == ("1", "schedutil")
    assert not made.exists(tuning_record.PATH)


def test_check_records_nothing(tmp_path):
    made = machine(tmp_path)
    tuning_program.main(["--check"], made)
    assert not made.exists(tuning_record.PATH)


def test_what_cannot_be_recorded_is_not_changed(tmp_path):
    made = machine(tmp_path)
    tree(tmp_path, {"/var/lib/allreduce": "a file in the way"})
    assert "cannot be applied" in tuning_program.main([], made)
    assert made.text(GOVERNOR) == "schedutil"
