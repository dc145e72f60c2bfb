# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux in verify: from the files of a recorded Rocky Linux 9 to the sentence."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import audit, selinux
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import selinux as verify
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import verification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Selinux
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.selinux import Denial, Denials
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import rocky9_selinux as rocky
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def checked(root, files, state=None, variables=None):
    """The checks of a recorded node, by name."""
    here = tree(root, files)
    fact = {"selinux": selinux.read_selinux(here), **(state or {})}
    probe = {"selinux_denials": audit.read_denials(here, rocky.TRAINER)}
    return {one["name"]: one for one in verify.checks({}, fact, variables or {}, probe)}


PLACE = "/home/trainer/.ssh"


@pytest.mark.parametrize(
    ("enforce", "labels", "status", "words"),
    [
        ("1", {PLACE: "ssh_home_t", f"{PLACE}/authorized_keys": "ssh_home_t"}, "passed", ""),
        ("1", {PLACE: "nfs_t", f"{PLACE}/authorized_keys": "nfs_t"}, "passed", ""),
        ("1", {PLACE: "ssh_home_t", f"{PLACE}/authorized_keys": "user_tmp_t"}, "failed", f"{PLACE}/authorized_keys, whose type is user_tmp_t"),
        ("1", {PLACE: ""}, "failed", "whose type is none"),
        ("0", {PLACE: "user_home_t"}, "skipped", "user_home_t"),
        ("1", {}, None, ""),
        ("1", None, None, ""),
    ],
)  # fmt: skip
def test_keys_that_sshd_may_not_read_are_named(tmp_path, enforce, labels, status, words):
    here = tree(tmp_path, rocky.machine(enforce, "enforcing" if enforce == "1" else "permissive"))
    probe = {"selinux_denials": None, "selinux_labels": labels}
    found = {one["name"]: one for one in verify.checks({}, {"selinux": selinux.read_selinux(here)}, {}, probe)}
    one = found.get("selinux_labels")
    assert (one and one["status"]) == status
    if words:
        assert words in one["reason"] and "restorecon -Rv" in one["fix"]


def statuses(found):
    return {name.removeprefix("selinux_"): one["status"] for name, one in found.items()}


def test_a_node_that_enforces_and_denied_nothing(tmp_path):
    found = checked(tmp_path, rocky.machine(log=""))
    assert statuses(found) == {"mode": "passed", "booleans": "passed", "denials": "passed"}
    assert found["selinux_denials"]["measured"] == "none since the boot"


@pytest.mark.parametrize(
    ("files", "state", "reason"),
    [
        ({"/etc/os-release": "ID=debian\n"}, {}, verify.ABSENT),
        (rocky.machine(), {"container": True}, verify.CONTAINER),
        ({}, {"container": True}, verify.CONTAINER),
        (rocky.machine(None, "disabled"), {}, verify.DISABLED),
    ],
    ids=["debian", "container", "container without", "disabled"],
)
def test_what_is_not_there_is_not_judged(tmp_path, files, state, reason):
    found = checked(tmp_path, files, state)
    assert statuses(found) == {"mode": "skipped"}
    assert found["selinux_mode"]["reason"] == reason


@pytest.mark.parametrize(
    ("enforce", "configured", "status", "words"),
    [
        ("0", "enforcing", "failed", "SELinux is permissive, although /etc/selinux/config says enforcing"),
        (None, "enforcing", "failed", "SELinux is disabled, although"),
        ("0", "permissive", "skipped", "permissive, as configured: it denies nothing"),
        ("1", "permissive", "skipped", "the next boot makes it permissive"),
        ("0", "nothing", "skipped", "the next boot makes it the default of the policy"),
        ("", "enforcing", "unknown", "does not say"),
    ],
)
def test_the_mode_is_judged_by_the_configuration(tmp_path, enforce, configured, status, words):
    found = checked(tmp_path, rocky.machine(enforce, configured, log=""))["selinux_mode"]
    assert found["status"] == status and words in found["reason"]


def test_a_mode_that_fell_short_comes_with_its_remedy():
    fix = verify.mode(Selinux("permissive", "enforcing"))["fix"]
    assert "'setenforce 1'" in fix and "enforcing=0" in fix


@pytest.mark.parametrize(
    ("booleans", "status", "words"),
    [
        (["deny_execmem"], "failed", "writable and executable"),
        (["deny_ptrace"], "skipped", "pidfd_getfd"),
        (["secure_mode"], "skipped", "newrole"),
        (["secure_mode_insmod"], "skipped", "no kernel module can be loaded"),
    ],
)
def test_a_boolean_that_is_on(tmp_path, booleans, status, words):
    found = checked(tmp_path, rocky.machine(booleans=booleans, log=""))["selinux_booleans"]
    assert found["status"] == status and words in found["reason"]
    assert found["measured"] == f"{booleans[0]} on"
    assert (f"setsebool -P {booleans[0]} off" in found["fix"]) is (status == "failed" or "insmod" in booleans[0])


@pytest.mark.parametrize(
    ("value", "status", "measured"), [("0 0", "failed", "allow_execmem off"), ("1 1", "passed", "none of them")]
)
def test_a_boolean_of_the_reference_policy_hinders_where_it_is_off(tmp_path, value, status, measured):
    files = {**rocky.machine(log=""), "/sys/fs/selinux/booleans/allow_execmem": value}
    found = checked(tmp_path, files)["selinux_booleans"]
    assert (found["status"], found["measured"]) == (status, measured)
    assert ("setsebool -P allow_execmem on" in found["fix"]) is (status == "failed")


def test_a_denial_names_command_target_and_class(tmp_path):
    log = rocky.event(1, rocky.EXECMEM) + rocky.event(2, rocky.EXECMEM)
    found = checked(tmp_path, rocky.machine(log=log))["selinux_denials"]
    assert (found["status"], found["measured"]) == ("failed", "2 since the boot")
    assert found["reason"] == "python was denied execmem on process unconfined_service_t (2 times)"
    assert found["fix"] == verify.EVENTS


@pytest.mark.parametrize(("path", "advised"), [("/opt/allreduce/lib/qos", True), (None, False)])
def test_labels_are_only_mended_where_a_file_was_denied(path, advised):
    """A label has nothing to do with memory."""
    one = Denial("python", "read", path or "unconfined_service_t", "file" if path else "process")
    assert (verify.LABELS in verify.denials(Denials(None, True, (one,)))["fix"]) is advised


def test_a_boolean_of_a_permissive_node_would_break_the_job_later(tmp_path):
    found = checked(tmp_path, rocky.machine("0", booleans=["deny_execmem"], log=""))["selinux_booleans"]
    assert found["status"] == "skipped" and found["reason"].startswith("once the node enforces: deny_execmem is on")


def test_what_a_permissive_domain_went_on_with_is_told(tmp_path):
    log = rocky.event(1, rocky.EXECMEM.replace("permissive=0", "permissive=1"))
    found = checked(tmp_path, rocky.machine("0", "permissive", log=log))["selinux_denials"]
    assert found["status"] == "skipped" and "python would be denied execmem" in found["reason"]


def test_a_log_that_does_not_reach_back_says_so(tmp_path):
    files = {**rocky.machine(log=""), "/var/log/audit/audit.log.1": ""}
    found = checked(tmp_path, files)["selinux_denials"]
    assert (found["status"], found["measured"]) == (
        "passed",
        "none in the last part of the audit log, which does not reach back to the boot",
    )


@pytest.mark.parametrize("problem", verify.LOGS)
def test_what_could_not_be_read_is_unknown_with_its_reason(problem):
    probe = {"selinux_denials": {"problem": problem, "complete": False, "denials": []}}
    state = {"selinux": {"mode": "enforcing", "configured": "enforcing", "booleans": {}}}
    found = {one["name"]: one for one in verify.checks({}, state, {}, probe)}["selinux_denials"]
    assert (found["status"], found["reason"], found["fix"]) == ("unknown", *verify.LOGS[problem])


def test_a_node_that_was_not_probed_is_unknown():
    state = {"selinux": {"mode": "enforcing", "configured": "enforcing", "booleans": {}}}
    found = {one["name"]: one for one in verify.checks({}, state, {}, {})}["selinux_denials"]
    assert (found["status"], found["reason"], found["fix"]) == ("unknown", *verify.NOT_PROBED)


def test_every_boolean_has_a_sentence():
    assert set(verify.BOOLEANS) == set(selinux.BOOLEANS)


def test_facts_of_another_shape_are_refused():
    with pytest.raises(DocumentError):
        list(verify.checks({}, {"selinux": {"booleans": ["deny_execmem"]}}, {}, {}))


def test_verify_has_the_checks_of_every_node(tmp_path):
    files = tree(tmp_path, rocky.machine("0", log=""))
    state = {"packages": {}, "selinux": selinux.read_selinux(files)}
    facts = {
        "gpu_stack": {"driver": None, "gpus": [], "environments": []},
        "gpu_node_state": state,
        "gpu_node": {"gpus": []},
    }
    probe = {"node_probe": {"selinux_denials": audit.read_denials(files, None)}}
    hostvars = {"gpu-1": {"ansible_facts": facts, "__verify_probe": probe}}
    found = verification(["gpu-1"], ["gpu-1"], hostvars, {"skipped": True}, "")["nodes"]["gpu-1"]["checks"]
    assert [(one["name"], one["node"], one["status"]) for one in found if one["name"].startswith("selinux")] == [
        ("selinux_mode", "gpu-1", "failed"), ("selinux_booleans", "gpu-1", "passed"), ("selinux_denials", "gpu-1", "passed"),
    ]  # fmt: skip
