# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.module_utils.node import state as node_state
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import hold_record
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

KEYS = {
    "boot_id", "kernel", "container", "driver_owner", "fips", "package_manager", "packages", "leftover_packages", "package_manager_interrupted",
    "package_manager_holder", "package_holds", "apt_components", "apt_mirrors", "apt_contradictions",
    "dnf_repositories", "dkms", "driver", "secure_boot", "selinux", "fapolicyd", "services",
    "kernel_modules", "cuda_alternative", "nvml_binding", "cdi",
    "disk_free_mib", "environments", "environments_kept", "files", "files_changed", "modprobe_overrides",
    "reboot_pending", "reboot_recorded", "records", "health", "horovod_builds",
    "uv",
}  # fmt: skip


def test_an_empty_root_gives_every_key_and_no_program_runs(tmp_path):
    asked = []
    state = node_state.read_node_state(tree(tmp_path, {}), asked.append, ["*"], ["chrony"], ["/"])
    assert set(state) == KEYS
    assert state["services"] == {"chrony": {"enabled": None, "active": None, "outdated": None}}
    assert (state["packages"], state["apt_mirrors"], state["package_manager"]) == ({}, None, None)
    assert len(asked) == 1


def test_an_rpm_host_is_asked_once_for_packages_and_once_for_services(tmp_path):
    asked = []

    def run(arguments):
        asked.append(arguments[0])
        return "kernel 0:4.18.0-553.el8\n" if arguments[0] == "rpm" else None

    files = tree(tmp_path, {"/etc/os-release": "ID=rocky\nID_LIKE=rhel\n"})
    state = node_state.read_node_state(files, run, ["kernel"], ["chronyd"], [])
    assert (state["packages"], state["apt_components"]) == ({"kernel": "4.18.0-553.el8"}, None)
    assert asked == ["rpm", "systemctl"]


def test_a_hold_is_compared_with_what_rpm_has_told_already(tmp_path):
    record = {"packages": ["kernel"], "excluded": [], "services": [], "module_stream": None, "kernel": False}
    asked = []
    files = tree(
        tmp_path,
        {
            "/etc/os-release": "ID=rocky\nID_LIKE=rhel\n",
            "/etc/dnf/plugins/versionlock.conf": "[main]\n",
            "/etc/dnf/plugins/versionlock.list": (
                "# BEGIN allreduce hold kernel\nkernel-0:4.18.0-553.el8.*\n# END allreduce hold kernel\n"
            ),
            "/var/lib/allreduce/holds/kernel.json": hold_record.text({**record, "state": "held"}),
        },
    )

    def holds(release):
        def run(arguments):
            asked.append(arguments[0])
            return f"kernel 0:4.18.0-{release}.el8\n" if arguments[0] == "rpm" else None

        return node_state.read_node_state(files, run, [], [], [])["package_holds"]

    assert holds("553") == {"kernel": {**record, "kept": True}}
    assert holds("600") == {"kernel": {**record, "kept": False}}
    assert asked == ["rpm"] * 2
