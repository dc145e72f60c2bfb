# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with disks as a recorded tree, and what wipefs, mdadm, mkfs.xfs, mount and systemctl do to it.

Behaviour as in the manuals of util-linux 2.38, mdadm 4.2 and xfsprogs 6.1: what finds something on a device refuses it.
"""

import json
import os
import shutil

from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.scratch import Machine
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.tables import bare_uuid

SIZE = 1920383410176  # of a disk sold as 1.92 TB
MODEL = "SAMSUNG MZQL21T9HCJR-00A07"
# proc(5), and what the kernel writes for the root file system of a server.
ROOT_MOUNT = "29 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n"
UUIDS = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(1, 9)]


# What the kernel shows of options that are written otherwise (fs/xfs/xfs_super.c, xfs_fs_show_options); nothing of some (mount(8)).
SHOWN = {
    "allocsize=64m": "allocsize=65536k",
    "logbsize=262144": "logbsize=256k",
    "pquota": "prjquota",
    "nofail": "",
    "exec": "",
    "dev": "",
}


class Node:
    """Disks by name; ``signatures``: {device: [(offset, uuid, label, type)]}, ``calls``: what was run."""

    def __init__(self, root, debian=True):
        self.root, self.tree = root, FileTree(str(root))
        self.signatures, self.calls, self.held, self.uuids = {}, [], set(), iter(UUIDS)
        self.fails, self.lsblk, self.labelled = None, None, []
        self.write("/proc/self/mountinfo", ROOT_MOUNT)
        self.write("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
        self.write("/etc/fstab", "# /etc/fstab\nUUID=root / ext4 errors=remount-ro 0 1\n")
        self.write("/usr/lib/systemd/system/fstrim.timer", "")
        self.write("/usr/sbin/update-initramfs" if debian else "/usr/bin/dracut", "")
        for name in ("mkfs.xfs", "mdadm"):
            self.write("/usr/sbin/" + name, "")
        if debian:
            self.write("/etc/debian_version", "12.5")
            self.write("/etc/mdadm/mdadm.conf", "HOMEHOST <system>\nMAILADDR root\n")

    def write(self, path, text):
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def disk(self, name, size=SIZE, model=MODEL, serial=None, **files):
        """Add a disk; files: {path below /sys/block/NAME with __ for a slash: text}."""
        place = f"/sys/block/{name}/"
        number = (
            "259:{}".format(len(os.listdir(str(self.root / "sys/block"))))
            if self.tree.exists("/sys/block")
            else "259:0"
        )
        known = {"size": str(size // 512), "ro": "0", "removable": "0", "queue/zoned": "none", "dev": number}
        known.update(
            {"device/model": model + "      ", "device/serial": serial or "S-" + name, "device/transport": "pcie"}
        )
        known.update({key.replace("__", "/"): value for key, value in files.items()})
        for path, text in known.items():
            self.write(place + path, text + "\n")
        (self.root / place.strip("/") / "holders").mkdir(exist_ok=True)
        self.write("/dev/" + name, "")
        self.signatures.setdefault("/dev/" + name, [])

    def replace_disks(self, *names):
        """Give the node blank disks in place of those, as a cloud does when it starts an instance again."""
        self.unmount_all()
        for name in self.tree.names("/sys/block"):
            if name.startswith("md") or name in names:
                shutil.rmtree(str(self.root / "sys/block" / name))
                self.signatures.pop("/dev/" + name, None)
        for number, name in enumerate(names):
            self.disk(name, serial=f"NEW{number}")

    def unmount_all(self):
        self.write("/proc/self/mountinfo", ROOT_MOUNT)

    def machine(self):
        return Machine(
            self.tree, self.replace, self.run, self.output, lambda: next(self.uuids), self.is_free, self.label
        )

    def label(self, path):
        """Keep who was to be labelled, and whether its file system was mounted by then."""
        mounted = any(call[0] == "mount" for call in self.calls)
        self.labelled.append(("/" + os.path.relpath(path, str(self.root)), mounted))

    def replace(self, path, content):
        with open(path, "wb") as stream:
            stream.write(content)

    def is_free(self, path):
        return "/" + os.path.relpath(path, str(self.root)) not in self.held

    def output(self, command):
        """Return what programs print that change nothing; recorded of util-linux 2.38.1."""
        if command[0] == "wipefs":
            found = self.signatures.get(self.real(command[-1]))
            lines = ["# offset,uuid,label,type"] + ["0x{:x},{},{},{}".format(*one) for one in found or []]
            return None if found is None else "\n".join(lines if found else []) + "\n"
        return None if self.lsblk is None else json.dumps(self.lsblk)

    def real(self, path):
        """Return the device that the name of an array leads to."""
        return self.tree.resolve(path)

    def run(self, command):
        self.calls.append(command)
        if self.fails and command[0] == self.fails:
            return 1, f"{command[0]}: it does not work\n"
        return getattr(self, "_" + command[0].replace(".", "_").replace("-", "_"))(command[1:])

    def _mdadm(self, words):
        if words[0] == "--create":
            return self._create(words[1], [one for one in words if one.startswith("/dev/")][1:], words)
        if words[0] == "--assemble":
            return self._start(words[1], words[2:])
        shutil.rmtree(str(self.root / "sys/block" / os.path.basename(words[1])))
        for name in self.tree.names("/sys/block"):
            held = self.root / "sys/block" / name / "holders" / os.path.basename(words[1])
            if held.exists():
                held.rmdir()
        return 0, ""

    def _create(self, path, members, words):
        if any(self.signatures[one] for one in members):
            return 1, "Continue creating array? "
        given = dict(one.lstrip("-").split("=", 1) for one in words if one.startswith("--") and "=" in one)
        for one in members:
            self.signatures[one].append((0x1000, given["uuid"], "any:" + given["name"], "linux_raid_member"))
        return self._start(path, members)

    def _start(self, path, members):
        """Run the array as md127, and lead its name there, as udev does."""
        place, name = self.root / "sys/block/md127", "md127"
        (place / "slaves").mkdir(parents=True)
        for text, value in (("dev", "9:127"), ("md/array_state", "clean"), ("md/level", "raid0"), ("size", "1")):
            self.write(f"/sys/block/{name}/{text}", value + "\n")
        for member in map(os.path.basename, members):
            (place / "slaves" / member).mkdir()
            (self.root / "sys/block" / member / "holders" / name).mkdir(parents=True)
        self.write("/dev/" + name, "")
        self.signatures.setdefault("/dev/" + name, [])
        link = self.root / path.lstrip("/")
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to("../" + name)
        return 0, f"mdadm: array {path} started.\n"

    def _mkfs_xfs(self, words):
        device = self.real(words[-1])
        if self.signatures[device]:
            return 1, f"mkfs.xfs: {device} appears to contain an existing filesystem\n"
        uuid = next(one for one in words if one.startswith("uuid="))[5:]
        self.signatures[device].append((0, uuid, "", "xfs"))
        return 0, ""

    def _mount(self, words):
        point, options = words[-1], "rw,relatime"
        line = next(one for one in (self.tree.text("/etc/fstab") or "").splitlines() if one.split()[1:2] == [point])
        uuid, wanted = line.split()[0][5:], line.split()[3].split(",")
        found = [
            one for one, all_of in self.signatures.items() if any(bare_uuid(uuid) == bare_uuid(s[1]) for s in all_of)
        ]
        if not found:
            return 32, f"mount: {point}: can't find UUID={uuid}.\n"
        number = self.tree.text(f"/sys/block/{os.path.basename(found[0])}/dev")
        options = ",".join(["rw"] + [SHOWN.get(one, one) for one in wanted if SHOWN.get(one, one)])
        self.unmount_all()
        with open(str(self.root / "proc/self/mountinfo"), "a") as stream:
            stream.write(f"40 29 {number} / {point} {options} shared:9 - xfs {found[0]} rw,inode64\n")
        return 0, ""

    def _umount(self, words):
        self.unmount_all()
        return 0, ""

    def _wipefs(self, words):
        self.signatures[self.real(words[-1])] = []
        return 0, ""

    def _systemctl(self, words):
        link = self.root / "etc/systemd/system/timers.target.wants/fstrim.timer"
        if words[0] == "enable":
            self.write("/etc/systemd/system/timers.target.wants/fstrim.timer", "")
        elif words[0] == "disable":
            link.unlink()
        return 0, ""

    def _update_initramfs(self, words):
        return 0, ""

    _dracut = _update_initramfs
