# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded machines are tuned and put back: files, values, arguments of the kernel, tuned's profile."""

import json
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernel_arguments
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import tuning, tuning_plan, tuning_record
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.tuning_describe import describe
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import server, snapshot

RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
SWAP = "/proc/sys/vm/swappiness"
CONF = "/etc/sysctl.d/90-allreduce.conf"
GOVERNOR = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
DEBIAN = {"/usr/sbin/update-grub": "", "/boot/grub/grub.cfg": "linux /vmlinuz-6.1.0 root=/dev/sda2 ro\n"}
EL9 = {"/usr/sbin/grubby": "", "/boot/loader/entries/1.conf": "linux /vmlinuz-5.14.0\noptions ro\n"}
TUNED = {
    "/usr/sbin/tuned-adm": "",
    "/etc/systemd/system/multi-user.target.wants/tuned.service": ("link", "/x"),
    "/etc/tuned/active_profile": "virtual-guest\n",
    "/etc/tuned/profile_mode": "auto\n",
}


class Node:
    """A machine below a directory that notes which programs were to be run."""

    def __init__(self, root, files=None, code=0):
        self.root, self.commands, self.code = root, [], code
        self.tree = tree(root, server() if files is None else files)
        self.machine = tuning.Machine(self.tree, self.replace, self.run)

    @staticmethod
    def replace(path, content):
        Path(path).write_bytes(content)

    def run(self, command):
        self.commands.append(command)
        return self.code, "no\n"

    def settle(self, check=False, **wanted):
        return tuning.settle(self.machine, dict(tuning_plan.NOTHING, **wanted), check)

    def text(self, path):
        return self.tree.text(path)

    def record(self):
        return json.loads(self.text(tuning_record.PATH))


def file(path=CONF, content="vm.swappiness = 10\n"):
    return {"path": path, "content": content, "mode": "0644"}


def test_a_change_is_recorded_before_and_put_back(tmp_path):
    node = Node(tmp_path)
    before = snapshot(tmp_path)
    done = node.settle(files=[file()], values=[{"path": SWAP, "value": "10"}])
    assert [(one["kind"], one["subject"], one["before"]) for one in done["changes"]] == [
        ("file", CONF, None),
        ("value", SWAP, "60"),
    ]
    assert (node.text(SWAP), node.text(CONF)) == ("10", "vm.swappiness = 10")
    assert node.record()["values"] == {SWAP: "60"} and node.record()["files"] == {CONF: None}
    assert (tmp_path / "var/lib/allreduce/tuning.json").stat().st_mode & 0o777 == 0o600
    assert node.settle()["changed"] is True
    after = snapshot(tmp_path)
    assert after.pop("proc/sys/vm/swappiness") == b"60" and before.pop("proc/sys/vm/swappiness") == b"60\n"
    assert after == before


def test_what_is_interrupted_can_be_put_back(tmp_path, monkeypatch):
    """The record is there before anything is changed."""
    node = Node(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(tuning, "set_value", lambda tree, step: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            node.settle(files=[file()], values=[{"path": SWAP, "value": "10"}])
    assert node.record()["files"] == {CONF: None} and node.record()["values"] == {SWAP: "60"}
    node.settle()
    assert node.text(CONF) is None and not (tmp_path / "var").exists()


def test_check_mode_predicts_and_changes_nothing(tmp_path):
    node = Node(tmp_path)
    before = snapshot(tmp_path)
    wanted = {"files": [file()], "values": [{"path": GOVERNOR, "value": "performance"}]}
    predicted = node.settle(True, **wanted)
    assert snapshot(tmp_path) == before and node.commands == []
    assert node.settle(**wanted) == predicted
    assert predicted["diff"][0] == {
        "before_header": CONF, "after_header": CONF, "before": "", "after": "vm.swappiness = 10\n",
    }  # fmt: skip
    assert predicted["diff"][1]["after"].count("performance") == 4


def test_the_first_value_is_what_is_put_back(tmp_path):
    node = Node(tmp_path)
    for value in ("10", "20"):
        node.settle(values=[{"path": SWAP, "value": value}])
    node.settle()
    assert node.text(SWAP) == "60"


def test_an_empty_value_is_put_back_by_a_line(tmp_path):
    """The kernel takes a write of no bytes for none."""
    node = Node(tmp_path, {**server(), RESERVED: "\n"})
    node.settle(values=[{"path": RESERVED, "value": "29400"}])
    node.settle()
    assert Path(node.tree.path(RESERVED)).read_bytes() == b"\n"


def test_what_is_declared_no_more_is_put_back_and_the_rest_stays(tmp_path):
    node = Node(tmp_path)
    governor = {"path": GOVERNOR, "value": "performance"}
    node.settle(files=[file()], values=[{"path": SWAP, "value": "10"}, governor])
    node.settle(values=[governor])
    assert (node.text(SWAP), node.text(CONF)) == ("60", None)
    assert not (tmp_path / "etc/sysctl.d").exists()
    assert node.record()["directories"] == ["/var", "/var/lib", "/var/lib/allreduce"]
    assert node.text("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor") == "performance"
    assert len(node.record()["values"]) == 4


def test_a_file_that_was_there_comes_back_with_its_bytes_and_mode(tmp_path):
    node = Node(tmp_path)
    place = tmp_path / "etc/security/limits.conf"
    place.write_bytes(b"\xff\xfe no text\n")
    place.chmod(0o600)
    node.settle(files=[file("/etc/security/limits.conf")])
    assert place.read_text() == "vm.swappiness = 10\n" and place.stat().st_mode & 0o777 == 0o644
    node.settle()
    assert place.read_bytes() == b"\xff\xfe no text\n" and place.stat().st_mode & 0o777 == 0o600


def test_values_that_the_node_does_not_have_are_left_out(tmp_path):
    assert Node(tmp_path).settle(values=[{"path": "/proc/sys/none", "value": "1"}])["changed"] is False


def test_a_directory_in_the_way_is_told_before_anything_changes(tmp_path):
    node = Node(tmp_path, {**server(), CONF + "/x": ""})
    with pytest.raises(ValueError, match="is not a file: move it away"):
        node.settle(files=[file()], values=[{"path": SWAP, "value": "10"}])
    assert node.text(SWAP) == "60"


def test_a_value_that_cannot_be_written_is_told_and_the_rest_is_done(tmp_path, monkeypatch):
    node = Node(tmp_path)
    opened = open

    def refuse(path, mode="r", **more):
        if mode == "w" and str(path).endswith("swappiness"):
            raise OSError(22, "Invalid argument")
        return opened(path, mode, **more)

    monkeypatch.setattr(tuning, "open", refuse, raising=False)
    wanted = {"values": [{"path": SWAP, "value": "10"}, {"path": GOVERNOR, "value": "performance"}]}
    done = node.settle(**wanted)
    assert done["problems"] == [
        {"code": "not_set", "subject": SWAP, "detail": {"value": "10", "reason": "Invalid argument"}}
    ]
    assert node.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") == "performance"


def test_a_value_that_the_kernel_changes_is_told(tmp_path, monkeypatch):
    node = Node(tmp_path)
    monkeypatch.setattr(tuning, "open", lambda path, mode: opened(str(path) + ".taken", mode), raising=False)
    opened = open
    done = node.settle(values=[{"path": SWAP, "value": "10"}])
    assert [(one["code"], one["detail"]["found"]) for one in done["problems"]] == [("not_kept", "60")]


def test_files_are_brought_into_use(tmp_path):
    node = Node(tmp_path)
    paths = ["/etc/systemd/system.conf.d/90-allreduce.conf", "/etc/systemd/system/a.service.d/90-allreduce.conf"]
    node.settle(files=[file(path) for path in paths])
    assert node.commands == [["systemctl", "daemon-reload"], ["systemctl", "daemon-reexec"]]
    node.settle(files=[file(path) for path in paths])
    assert len(node.commands) == 2
    node.settle()
    assert len(node.commands) == 4 and not (tmp_path / "etc/systemd").exists()


def test_logind_reads_its_configuration_anew(tmp_path):
    node = Node(tmp_path)
    path = "/etc/systemd/logind.conf.d/90-allreduce.conf"
    node.settle(files=[file(path)])
    assert node.settle(files=[file(path)])["changed"] is False
    node.settle()
    assert node.commands == [["systemctl", "kill", "--signal=HUP", "systemd-logind.service"]] * 2


def test_a_program_that_fails_is_told_and_tried_again(tmp_path):
    node = Node(tmp_path, {**server(), **TUNED}, code=1)
    wanted = {"profile": "allreduce", "files": [file("/etc/tuned/allreduce/tuned.conf")]}
    done = node.settle(**wanted)
    assert [(one["code"], one["subject"]) for one in done["problems"]] == [
        ("command_failed", "tuned-adm profile allreduce")
    ]
    assert node.settle(**wanted)["changed"] is True
    assert node.commands == [["tuned-adm", "profile", "allreduce"]] * 2


def test_a_menu_that_was_not_written_is_written_the_next_time(tmp_path):
    node = Node(tmp_path, {**server(), **DEBIAN}, code=1)
    before = snapshot(tmp_path)
    assert describe(node.settle(arguments=["iommu=pt"])["problems"][0]) == "update-grub ended with 1: no."
    node.code = 0
    assert node.settle(arguments=["iommu=pt"])["changed"] is True
    assert node.settle(arguments=["iommu=pt"])["changed"] is False
    node.code = 1
    node.settle()
    assert node.record()["commands"] == [["update-grub"]]
    node.code = 0
    node.settle()
    assert node.commands == [["update-grub"]] * 4 and snapshot(tmp_path) == before


def test_a_program_that_a_run_did_not_reach_runs_the_next_time(tmp_path, monkeypatch):
    """The file is there by then; what it is for still needs a boot."""
    node = Node(tmp_path, {**server(), **DEBIAN})
    before = snapshot(tmp_path)
    for wanted in ({"arguments": ["iommu=pt"]}, {}):
        node.commands = []
        with monkeypatch.context() as patch:
            patch.setattr(tuning, "start", lambda machine, command: sys.exit("killed"))
            with pytest.raises(SystemExit):
                node.settle(**wanted)
        done = node.settle(**wanted)
        assert (done["changed"], done["reboot"], node.commands) == (True, True, [["update-grub"]])
        assert node.settle(**wanted)["changed"] is False
    assert snapshot(tmp_path) == before


def test_grubs_drop_in(tmp_path):
    node = Node(tmp_path, {**server(), **DEBIAN})
    before = snapshot(tmp_path)
    done = node.settle(arguments=["iommu=pt", "init_on_alloc=0"])
    assert node.text("/etc/default/grub.d/90-allreduce.cfg") == (
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt init_on_alloc=0"'
    )
    assert (done["reboot"], node.commands) == (True, [["update-grub"]])
    assert node.settle(arguments=["iommu=pt", "init_on_alloc=0"])["changed"] is False
    node.settle()
    assert node.commands == [["update-grub"]] * 2 and snapshot(tmp_path) == before


class Grubby(Node):
    """A node whose grubby changes all entries, GRUB's environment and its defaults, and writes their words anew."""

    def run(self, command):
        options = {name: words.split() for name, dummy, words in (word.partition("=") for word in command[2:])}
        for path in () if self.code else kernel_arguments.places(self.tree, "grubby"):
            place = self.tree.path(path)
            with open(place, newline="") as stream:
                text = stream.read()
            line = kernel_arguments.line_of(path, text)
            if line and "$kernelopts" not in line.group("line"):
                named = options.get("--args", []) + options.get("--remove-args", [])
                words = [word for word in line.group("line").split() if word not in named] + options.get("--args", [])
                text = text[: line.start("line")] + " ".join(words) + text[line.end("line") :]
            if path.endswith("grubenv"):
                text = text.rstrip("#").ljust(1024, "#")
            Path(place).write_text(text)
        return super().run(command)


ENTRIES = "/boot/loader/entries"
EL8 = {
    "/usr/sbin/grubby": "",
    f"{ENTRIES}/1.conf": "linux /vmlinuz-4.18.0-1\noptions $kernelopts $tuned_params\n",
    f"{ENTRIES}/2.conf": "linux /vmlinuz-4.18.0-2\noptions iommu=pt  ro single\ngrub_class kernel\n",
    "/boot/grub2/grubenv": "# GRUB Environment Block\nsaved_entry=1\nkernelopts=root=/dev/sda2  ro \n".ljust(1024, "#"),
    "/etc/default/grub": "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX='rhgb  quiet'\nGRUB_DISABLE_RECOVERY=true\n",
}


def test_grubby_is_given_what_lacks_and_later_what_goes(tmp_path):
    node = Grubby(tmp_path, {**server(), **EL9})
    before = snapshot(tmp_path)
    assert node.settle(arguments=["iommu=pt"])["reboot"] is True
    assert node.settle(arguments=["iommu=pt"])["changed"] is False
    assert node.settle()["reboot"] is True
    assert node.commands == [
        ["grubby", "--update-kernel=ALL", "--args=iommu=pt"],
        ["grubby", "--update-kernel=ALL", "--remove-args=iommu=pt"],
    ]
    assert snapshot(tmp_path) == before


def test_entries_that_had_an_argument_keep_it_and_every_byte(tmp_path):
    node = Grubby(tmp_path, {**server(), **EL8})
    before = snapshot(tmp_path)
    node.settle(arguments=["iommu=pt", "init_on_alloc=0"])
    assert "kernelopts=root=/dev/sda2 ro iommu=pt init_on_alloc=0\n" in (tmp_path / "boot/grub2/grubenv").read_text()
    assert node.settle(arguments=["iommu=pt", "init_on_alloc=0"])["changed"] is False
    node.settle(arguments=["init_on_alloc=0"])
    assert "options ro single init_on_alloc=0 iommu=pt\n" in (tmp_path / "boot/loader/entries/2.conf").read_text()
    assert "iommu=pt" not in (tmp_path / "boot/grub2/grubenv").read_text()
    node.settle()
    assert snapshot(tmp_path) == before


def test_what_others_did_to_the_entries_meanwhile_stays(tmp_path):
    node = Grubby(tmp_path, {**server(), **EL8})
    node.settle(arguments=["iommu=pt"])
    entries = tmp_path / "boot/loader/entries"
    (entries / "3.conf").write_text("linux /vmlinuz-4.18.0-3\noptions ro iommu=pt nosmt\n")  # a new kernel
    (entries / "2.conf").write_text("linux /vmlinuz-4.18.0-2\noptions ro nosmt\n")  # the argument, too, was taken away
    node.settle()
    assert (entries / "3.conf").read_text().endswith("options ro nosmt\n")
    assert (entries / "2.conf").read_text().endswith("options ro nosmt\n")
    assert (tmp_path / "boot/grub2/grubenv").read_text() == EL8["/boot/grub2/grubenv"]


def test_grubby_that_fails_leaves_what_has_to_be_put_back(tmp_path):
    node = Grubby(tmp_path, {**server(), **EL8})
    before = snapshot(tmp_path)
    node.settle(arguments=["iommu=pt"])
    node.code = 1
    assert describe(node.settle()["problems"][0]).startswith("grubby --update-kernel=ALL --remove-args=iommu=pt ended")
    assert node.record()["arguments"] == {"iommu=pt": [f"{ENTRIES}/2.conf"]}
    node.code = 0
    assert node.settle()["changed"] is True
    assert snapshot(tmp_path) == before


def test_an_argument_that_was_there_is_not_ours_to_take_away(tmp_path):
    node = Node(tmp_path, {**server(), **EL9, "/boot/loader/entries/1.conf": "linux /vmlinuz-5\noptions ro iommu=pt\n"})
    assert node.settle(arguments=["iommu=pt"])["changed"] is False
    node.settle(arguments=["iommu=pt"], values=[{"path": SWAP, "value": "10"}])
    node.settle()
    assert node.commands == []


def test_tuned_gets_our_profile_and_its_own_choice_back(tmp_path):
    node = Node(tmp_path, {**server(), **TUNED})
    profile = file("/etc/tuned/allreduce/tuned.conf", "[main]\n")
    node.settle(profile="allreduce", files=[profile])
    assert node.commands == [["tuned-adm", "profile", "allreduce"]]
    (tmp_path / "etc/tuned/active_profile").write_text("allreduce\n")
    assert node.settle(profile="allreduce", files=[profile])["changed"] is False
    node.settle(profile="allreduce", files=[dict(profile, content="[main]\n#\n")])
    assert node.commands[1:] == [["tuned-adm", "profile", "allreduce"]]
    node.settle()
    assert node.commands[2:] == [["tuned-adm", "auto_profile"]]


def test_interrupts_go_to_the_node_of_their_device(tmp_path):
    node = Node(tmp_path)
    done = node.settle(interfaces=["ens1"])
    assert [(one["subject"], one["after"]) for one in done["changes"]] == [("/proc/irq/120/smp_affinity_list", "2-3")]
    assert node.text("/proc/irq/121/smp_affinity_list") == "2"
    assert node.settle(interfaces=["ens1"])["changed"] is False
    node.settle()
    assert node.text("/proc/irq/120/smp_affinity_list") == "0"


def test_a_recorded_tree_starts_no_program(tmp_path):
    node = Node(tmp_path, {**server(), **DEBIAN})
    node.machine.run = None
    assert node.settle(arguments=["iommu=pt"], files=[file("/etc/systemd/system/x.service")])["problems"] == []
    assert node.commands == []
