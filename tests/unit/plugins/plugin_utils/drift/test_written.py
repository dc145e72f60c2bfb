# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is changed by hand on a node is seen by verification: on trees that holds, files and settings were really written to."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import config_files, seen_files
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.node.state import read_node_state
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import hold as package_hold
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import hold_dnf
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import applied, tuning
from ansible_collections.allreduce.gpu.plugins.modules.config_files import SPEC
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import drift as checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import BY_HOLD
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.desired import desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import node_comparisons

PACKAGES = {"nvidia-driver": "580.65.06-1", "libnccl2": "2.27.3-1", "doca-ofed": "3.1.0-1", "bash": "5.2-1"}
PATTERNS = {"driver": ["nvidia-*"], "nccl": ["libnccl*"], "doca": ["doca-*"]}
STACK = {
    "gpus": [{"model": "H100", "count": 1}],
    "driver": {"branch": "580", "version": "580.65.06", "source": "nvidia", "held": PATTERNS["driver"],
               "packages": [{"name": "nvidia-driver", "version": None}]},
    "nccl": {"version": "2.27.3", "packages": [{"name": "libnccl2", "version": None}]},
}  # fmt: skip
SYSTEMS = {
    "apt": {**STACK, "os": {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}},
    "dnf": {**STACK, "os": {"id": "rocky", "version": "9", "arch": "x86_64", "family": "rhel"}},
}
STATUS, LIST = "var/lib/dpkg/status", "etc/dnf/plugins/versionlock.list"
MINE = {"owner": pwd.getpwuid(os.geteuid())[0], "group": grp.getgrgid(os.getegid())[0], "mode": "0644"}
WHOLE = {name: one.get("default") for name, one in SPEC.items()}
NOUVEAU = {
    "path": "/etc/modprobe.d/allreduce-nouveau.conf",
    "content": "blacklist nouveau\noptions nouveau modeset=0\n",
}
PARAMETERS = {"path": "/etc/modprobe.d/allreduce-nvidia.conf", "content": "options nvidia NVreg_A=1 NVreg_B=0x2\n"}
OVERRIDE = {"path": "/etc/systemd/system/nvidia-persistenced.service.d/allreduce.conf", "content": "[Service]\n"}
NEXT_BOOT = {"path": "/etc/allreduce/gpu_settings.json", "content": '[{"power_limit_watts": 300}]\n'}
HOSTS = {"path": "/etc/hosts", "block": "10.0.0.1 gpu-1"}
OLD = {"path": "/etc/apt/sources.list.d/cuda.list", "state": "absent"}
ELSEWHERE = {"path": "/var/lib/allreduce/reboot-pending", "content": "{}"}
FILES = (NOUVEAU, PARAMETERS, OVERRIDE, NEXT_BOOT, HOSTS, OLD, ELSEWHERE)
SETTINGS = [
    {"path": "/etc/sysctl.d/99-allreduce.conf", "content": "vm.swappiness = 1\n", "mode": "0644"},
    {"path": "/etc/security/limits.d/99-allreduce.conf", "content": "* - memlock unlimited\n", "mode": "0644"},
    {"path": "/etc/udev/rules.d/99-allreduce.rules", "content": "# rule\n", "mode": "0644"},
    {"path": "/etc/systemd/system/x.wants/x.service", "link": "/etc/systemd/system/x.service"},
]


class Machine:
    """A tree of one family to which roles have written."""

    def __init__(self, place, family):
        self.place, self.tree, self.family = place, FileTree(str(place)), family
        release = {"apt": "ID=debian\n", "dnf": "ID=rocky\nID_LIKE=rhel\n"}[family]
        self.put("etc/os-release", release)
        stanzas = [
            f"Package: {name}\nStatus: install ok installed\nVersion: {version}\n" for name, version in PACKAGES.items()
        ]
        self.put(STATUS, "\n".join(stanzas) if family == "apt" else "")
        if family == "dnf":
            self.put("etc/dnf/plugins/versionlock.conf", "[main]\n")
            self.put(LIST, "bash-0:5.2-1.*\n")
        for path in (
            "etc/apt/preferences.d",
            "etc/apt/apt.conf.d",
            "var/lib/allreduce/holds",
            "etc/needrestart/conf.d",
        ):
            place.joinpath(path).mkdir(parents=True, exist_ok=True)

    def put(self, path, text):
        self.place.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        self.place.joinpath(path).write_text(text)

    def edit(self, path, old, new):
        text = self.place.joinpath(path).read_text()
        assert old in text
        self.put(path, text.replace(old, new, 1))

    def run(self, arguments):
        if arguments == hold_dnf.QUERY:
            return "".join(f"{name} 0:{version}\n" for name, version in PACKAGES.items())
        return None

    def dpkg(self, lines):
        for line in lines.splitlines():
            name, word = line.split()
            text = self.place.joinpath(STATUS).read_text()
            self.put(STATUS, re.sub(rf"(Package: {name}\nStatus: )\S+", rf"\g<1>{word}", text))
        return 0, ""

    def hold(self, state="held"):
        for name, patterns in PATTERNS.items():
            packaged, wanted = BY_HOLD.get(name), None
            if packaged:
                wanted = packaged.hold_of(desired(SYSTEMS[self.family], {}))
            given = {
                "name": name, "state": state, "packages": list(wanted.packages if wanted else patterns),
                "excluded": list(wanted.excluded if wanted else ()), "services": list(wanted.services if wanted else ()),
                "module_stream": None, "kernel": False,
            }  # fmt: skip
            plan = package_hold.plan(self.tree, self.run, given)
            files = [(one, found, config_files.plan(one, found)) for one, found in plan["files"]]
            package_hold.apply(plan, files, write, self.dpkg, 0)

    def keep(self, *entries):
        for entry in entries:
            declared = {**MINE, **entry}
            there = {**WHOLE, **declared, "path": str(self.place) + entry["path"]}
            found = config_files.found(there)
            whole = config_files.completed(there, found)
            config_files.apply(whole, config_files.plan(whole, found), write)
            noted = {seen_files.name(declared): seen_files.expected(declared)}
            seen_files.note(self.tree, noted, [{**WHOLE, **declared}])

    def settle(self, files):
        wanted = {"files": files, "values": [], "interfaces": [], "arguments": [], "profile": ""}
        settings = tuning.Machine(self.tree, lambda path, content: self.place.joinpath(path).write_bytes(content))
        tuning.settle(settings, wanted)
        state = "present" if files else "absent"
        applied.note(self.tree, "tuning", {"state": state, "applied": "d1"}, wanted)

    def found(self):
        """Return what verification says of it that did not pass: {name of the check: what differs, and what to do}."""
        state = read_node_state(self.tree, self.run, ["*"], [], [])
        mine = [
            one for one in node_comparisons(SYSTEMS[self.family], state, {}) if one.kind in ("hold", "file", "modprobe")
        ]
        failed = [one for one in checks.checks(mine) if one["status"] != "passed"]
        assert all(one["status"] == "failed" for one in failed)
        return {one["name"]: f"{one['reason']}; {one['fix']}" for one in failed}


def write(path, content):
    with open(path, "wb") as stream:
        stream.write(config_files.as_bytes(content))


@pytest.fixture(params=["apt", "dnf"])
def machine(request, tmp_path):
    found = Machine(tmp_path, request.param)
    found.hold()
    found.keep(*FILES)
    found.settle(SETTINGS)
    return found


def test_what_roles_left_is_as_written(machine):
    assert machine.found() == {}


def test_a_boot_takes_nothing_of_it_away(machine):
    shutil.rmtree(machine.place / "run")
    assert machine.found() == {}
    machine.place.joinpath(NOUVEAU["path"][1:]).unlink()
    assert set(machine.found()) == {"written_files"}


HOLDS = {
    "apt": {
        "driver": lambda one: one.dpkg("nvidia-driver install"),
        "nccl": lambda one: one.dpkg("libnccl2 install"),
        "doca": lambda one: one.dpkg("doca-ofed install"),
    },
    "dnf": {
        "driver": lambda one: one.edit(LIST, "nvidia-driver-0:580.65.06-1.*\n", ""),
        "nccl": lambda one: one.edit(LIST, "libnccl2-0:2.27.3-1", "libnccl2-0:2.27.2-1"),
        "doca": lambda one: one.edit(LIST, "doca-ofed", "# doca-ofed"),
    },
}
EVERYWHERE = {
    "driver": lambda one: one.place.joinpath("var/lib/allreduce/holds/driver.json").unlink(),
    "nccl": lambda one: one.edit("var/lib/allreduce/holds/nccl.json", "libnccl*", "libnccl3*"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_hold_that_was_removed(machine, name):
    HOLDS[machine.family][name](machine)
    assert machine.found() == {"package_holds": f"hold of {name} is incomplete instead of held; run site again"}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_record_that_is_not_the_plan_s(machine, name):
    EVERYWHERE[name](machine)
    state = {"driver": "missing", "nccl": "incomplete instead of held"}[name]
    assert machine.found() == {"package_holds": f"hold of {name} is {state}; run site again"}


def test_pins_of_apt_and_the_plugin_of_dnf_belong_to_the_hold(machine):
    lost = {"apt": "etc/apt/preferences.d/allreduce-nccl", "dnf": "etc/dnf/plugins/versionlock.conf"}
    machine.place.joinpath(lost[machine.family]).unlink()
    assert set(machine.found()) == {"package_holds"}


WRITTEN = [one["path"] for one in (NOUVEAU, PARAMETERS, OVERRIDE, NEXT_BOOT, *SETTINGS)]


@pytest.mark.parametrize("path", WRITTEN)
def test_a_file_that_was_deleted(machine, path):
    machine.place.joinpath(path[1:]).unlink()
    assert machine.found() == {"written_files": f"{path} is missing; run site again"}


@pytest.mark.parametrize("path", WRITTEN[:-1])
@pytest.mark.parametrize("change", ["text", "mode"])
def test_a_file_that_was_edited(machine, path, change):
    place = machine.place / path[1:]
    place.write_text(place.read_text() + "# more\n") if change == "text" else place.chmod(0o600)
    assert machine.found() == {"written_files": f"{path} is edited instead of as written; run site again"}


def test_parts_of_files_links_and_what_is_there_again(machine):
    machine.edit("etc/hosts", "10.0.0.1", "10.0.0.2")
    link = machine.place / SETTINGS[-1]["path"][1:]
    link.unlink()
    link.symlink_to("/dev/null")
    machine.put(OLD["path"][1:], "deb x y z\n")
    reason = machine.found()["written_files"]
    assert "/etc/hosts [allreduce.gpu] is edited instead of as written" in reason
    assert f"{SETTINGS[-1]['path']} is edited instead of as written" in reason
    assert f"{OLD['path']} (there again) is in the way of the plan" in reason


def test_what_others_may_change_is_left_to_them(machine):
    machine.edit("etc/hosts", "# ", "127.0.0.1 mine\n# ")
    machine.place.joinpath(ELSEWHERE["path"][1:]).unlink()
    machine.put("etc/modprobe.d/somebody.conf", "options kvm_intel nested=1\n")
    assert machine.found() == {}


def test_what_is_put_back_or_declared_anew_is_as_written(machine):
    machine.place.joinpath(NOUVEAU["path"][1:]).unlink()
    machine.dpkg("nvidia-driver install")
    machine.settle(SETTINGS[:2])
    machine.hold()
    machine.keep({**NOUVEAU, "content": "blacklist nouveau\n"})
    assert machine.found() == {}
    machine.settle([])
    assert machine.found() == {}


@pytest.mark.parametrize(
    ("path", "line", "state"),
    [
        ("etc/modprobe.d/zz.conf", "options nvidia NVreg_A=0", "0 by line 2 of /etc/modprobe.d/zz.conf"),
        (
            "usr/lib/modprobe.d/nvidia.conf",
            "options  nvidia  x=1 \\\n NVreg-A=0",
            "0 by line 2 of /usr/lib/modprobe.d/nvidia.conf",
        ),
        ("etc/modprobe.d/zz.conf", "options nvidia NVreg_A=1", None),
        ("etc/modprobe.d/zz.conf", "#options nvidia NVreg_A=0", None),
        ("etc/modprobe.d/zz.conf", "options nvidia_uvm NVreg_A=0", None),
        ("etc/modprobe.d/00.conf", "options nvidia NVreg_A=0", None),  # ours is read later, and wins
        ("etc/modprobe.d/zz.txt", "options nvidia NVreg_A=0", None),
    ],
)
def test_an_option_in_another_file_of_modprobe_s(machine, path, line, state):
    machine.put(path, f"# by hand\n{line}\n")
    said = f"NVreg_A of nvidia is {state} instead of 1; remove that line, or do not declare the value"
    assert machine.found() == ({"module_parameters": said} if state else {})


def test_of_several_files_the_last_counts(machine):
    machine.put("etc/modprobe.d/y.conf", "options nouveau modeset=1\n")
    assert set(machine.found()) == {"module_parameters"}
    machine.put("etc/modprobe.d/z.conf", "options nouveau modeset=0\n")
    assert machine.found() == {}


@pytest.mark.parametrize("family", ["apt", "dnf"])
def test_where_no_role_ever_ran_nothing_is_missing(tmp_path, family):
    machine = Machine(tmp_path, family)
    machine.put("etc/modprobe.d/nvidia.conf", "options nvidia NVreg_A=0\n")
    assert machine.found() == {}
