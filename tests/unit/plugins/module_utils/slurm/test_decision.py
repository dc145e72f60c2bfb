# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a node: why it is drained, what is given back."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.program_options import DEFAULTS
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm import decision
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm.decision import PREFIX, Seen

NOW = 1_000_000
OURS = PREFIX + "xid GPU1: reboot"
IDLE = Seen("idle", "", None)


def finding(severity, action_class, check="xid", subject="GPU1"):
    return {"check": check, "subject": subject, "severity": severity, "action_class": action_class}


def document(*findings, verdict="ok", age=10):
    return {"findings": list(findings), "verdict": verdict, "timestamp": NOW - age, "duration_seconds": 2}


@pytest.mark.parametrize(("severity", "action_class", "goes"), [
    ("failed", "reset", True), ("failed", "reboot", True), ("failed", "isolate", True), ("failed", "configure", True),
    ("reboot_required", "reset", True), ("degraded", "isolate", True),
    ("degraded", "configure", False), ("failed", "monitor", False), ("degraded", "monitor", False),
    # What a job did, and what is not known.
    ("failed", "application", False), ("degraded", "application", False),
    ("unknown", "reboot", False), ("unknown", "configure", False),
])  # fmt: skip
def test_which_findings_take_a_node_out_of_service(severity, action_class, goes):
    assert bool(decision.reason_of(document(finding(severity, action_class)))) is goes


def test_a_reason_names_checks_and_gpus_and_nothing_that_a_device_says():
    found = [
        finding("failed", "reboot"),
        finding("degraded", "reset", "nvlinks", None),
        finding("degraded", "monitor", "inforom"),
    ]
    assert decision.reason_of(document(*found)) == "allreduce: xid GPU1: reboot; nvlinks node: reset"
    many = [finding("failed", "reset", subject=f"GPU{number}") for number in range(8)]
    assert decision.reason_of(document(*many)).endswith("; xid GPU2: reset; 5 more")
    assert "$(reboot)" not in decision.reason_of(document(finding("failed", "isolate", "disks", "sda$(reboot)\n")))


KNOWN = {"outcome": "in", "drains": [], "refused": []}
REFUSED = [{"what": PREFIX + "epilog of job 7", "time": NOW - 100}]
DRAINED = Seen("drained", OURS, NOW - 60)
WELL, SICK = document(), document(finding("failed", "reboot"), verdict="failed")


@pytest.mark.parametrize(("own", "said", "known", "action"), [
    (IDLE, WELL, {}, "in"),
    (IDLE, SICK, {}, "drain"),
    (Seen("mixed", "", None), SICK, {}, "drain"),
    # Ours is taken back after the checks passed in a run that began later.
    (DRAINED, WELL, {}, "resume"),
    (DRAINED._replace(state="draining"), WELL, {}, "resume"),
    (DRAINED, SICK, {}, "out"),
    (DRAINED._replace(since=NOW - 11), WELL, {}, "waiting"),
    (DRAINED._replace(since=None), WELL, {}, "waiting"),
    (DRAINED, document(verdict="unknown"), {}, "waiting"),
    (DRAINED, document(verdict="degraded"), {}, "waiting"),
    (DRAINED, WELL, {"drains": [NOW - 9000] * 3}, "spent"),
    (DRAINED, WELL, {"drains": [NOW - 9000] * 2}, "resume"),
    # That of others is left, whatever the health says.
    (Seen("drained", "fan", NOW - 60), WELL, {}, "theirs"),
    (Seen("drained", "fan", NOW - 60), SICK, {}, "theirs"),
    (Seen("drained", "", None), SICK, {}, "theirs"),
    (Seen("drained", "the allreduce: one", NOW - 60), WELL, {}, "theirs"),
    (Seen("drained", "Prolog error", NOW - 60), WELL, {}, "theirs"),
    (Seen("drained", "Epilog error", NOW - 60), WELL, {"refused": REFUSED}, "rename"),
    (Seen("drained", "Epilog error", NOW - 900), WELL, {"refused": REFUSED}, "theirs"),
    (Seen("drained", "Kill task failed", NOW - 60), WELL, {"refused": REFUSED}, "theirs"),
    (None, SICK, {}, "unknown"),
])  # fmt: skip
def test_what_is_done(own, said, known, action):
    nodes = {"n1": own, "n2": IDLE} if own else {"n2": IDLE}
    wanted = decision.reason_of(said)
    assert decision.decide("n1", nodes, wanted, said, {**KNOWN, **known}, DEFAULTS, NOW).action == action


def test_a_reason_of_slurm_s_becomes_the_one_that_we_had():
    nodes = {"n1": Seen("drained", "Epilog error", NOW - 60)}
    known = {**KNOWN, "refused": REFUSED}
    assert decision.decide("n1", nodes, "", WELL, known, DEFAULTS, NOW).reason == "allreduce: epilog of job 7"
    assert decision.decide("n1", nodes, OURS, SICK, known, DEFAULTS, NOW).reason == OURS


def cluster(size, drained, since=NOW - 60, reason=OURS, state="drained"):
    names = [f"n{number}" for number in range(size)]
    return {name: Seen(state, reason, since) if place < drained else IDLE for place, name in enumerate(names)}


@pytest.mark.parametrize(("nodes", "room"), [
    (cluster(2, 0), True), (cluster(2, 1), False), (cluster(19, 1), False), (cluster(20, 1), True), (cluster(20, 2), False),
    (cluster(100, 9), True), (cluster(100, 10), False),
    (cluster(2, 1, since=NOW - 600), True), (cluster(2, 1, since=NOW - 599), False), (cluster(2, 1, since=NOW + 30), False),
    (cluster(2, 1, since=None), False), (cluster(2, 1, reason="fan"), True), (cluster(2, 1, state="idle"), True),
])  # fmt: skip
def test_there_is_room_for_a_tenth_in_ten_minutes(nodes, room):
    last = f"n{len(nodes) - 1}"
    assert decision.has_room(last, nodes, NOW) is room
    decided = decision.decide(last, nodes, OURS, SICK, KNOWN, DEFAULTS, NOW)
    assert decided.action == ("drain" if room else "held")


def test_a_drain_that_was_interrupted_is_judged_again():
    nodes = {"n1": Seen("drained", OURS, NOW - 20), "n2": Seen("drained", OURS, NOW - 30)}
    interrupted = {**KNOWN, "outcome": "draining"}
    actions = [decision.decide(name, nodes, OURS, SICK, interrupted, DEFAULTS, NOW).action for name in nodes]
    assert actions == ["withdraw", "out"]
    assert decision.decide("n1", nodes, OURS, SICK, KNOWN, DEFAULTS, NOW).action == "out"
