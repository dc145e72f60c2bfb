# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a mounted scratch, on a recorded /proc."""

from ansible_collections.allreduce.gpu.plugins.module_utils.storage.users import users
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

ROOT = "29 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw\n"
SCRATCH = "40 29 9:127 / /scratch rw shared:7 - xfs /dev/md127 rw\n"
# What a service of systemd has with a namespace of its own, and a container.
FOLLOWS = "529 501 8:2 / / rw master:1 - ext4 /dev/sda2 rw\n540 529 9:127 / /scratch rw master:7 - xfs /dev/md127 rw\n"
ALONE = "629 601 0:50 / / rw - overlay overlay rw\n640 629 9:127 / /scratch rw master:7 - xfs /dev/md127 rw\n"
OWN = ("link", "mnt:[4026531840]")


def process(number, name, **links):
    place = f"/proc/{number}/"
    found = {place + "comm": name + "\n", place + "ns/mnt": OWN, place + "mountinfo": ROOT + SCRATCH}
    found.update({place + key.replace("__", "/"): ("link", target) for key, target in links.items()})
    return found


def test_users(tmp_path):
    files = {"/proc/self/mountinfo": ROOT + SCRATCH, "/proc/self/ns/mnt": OWN}
    files.update(process(1, "systemd", cwd="/", fd__3="/scratch2/file"))
    files.update(process(10, "bash", cwd="/scratch"))
    files.update(process(11, "python3", fd__7="/scratch/imagenet/a (deleted)"))
    files.update(process(12, "loader", map_files__7f00="/scratch/lib.so"))
    files.update(process(13, "train", exe="/scratch/bin/train"))
    here = tree(tmp_path, files)
    assert users(here, "/scratch", "9:127") == [
        "process 10 (bash)", "process 11 (python3)", "process 12 (loader)", "process 13 (train)",
    ]  # fmt: skip


def test_mounts_over_and_beside_it(tmp_path):
    more = "41 40 0:5 / /scratch/tmp rw - tmpfs none rw\n42 29 9:127 /data /srv rw - xfs /dev/md127 rw\n"
    here = tree(tmp_path, {"/proc/self/mountinfo": ROOT + SCRATCH + more, "/proc/self/ns/mnt": OWN})
    assert users(here, "/scratch", "9:127") == ["mount /scratch/tmp", "mount /srv"]


def test_containers_once_each(tmp_path):
    files = {"/proc/self/mountinfo": ROOT + SCRATCH, "/proc/self/ns/mnt": OWN}
    for number, name, mounts in ((20, "torchrun", ALONE), (21, "python3", ALONE), (22, "nginx", ROOT)):
        files.update({
            f"/proc/{number}/comm": name, f"/proc/{number}/mountinfo": mounts,
            f"/proc/{number}/ns/mnt": ("link", f"mnt:[{1 if number < 22 else 2}]"),
            f"/proc/{number}/cwd": ("link", "/scratch"),  # nginx's is another
        })  # fmt: skip
    assert users(tree(tmp_path, files), "/scratch", "9:127") == ["mount namespace of process 20 (torchrun)"]


def test_a_namespace_that_follows_this_one_uses_what_its_processes_use(tmp_path):
    """The kernel unmounts it there, too (Documentation/filesystems/sharedsubtree.rst), unless a process has a file in it."""
    files = {"/proc/self/mountinfo": ROOT + SCRATCH, "/proc/self/ns/mnt": OWN}
    for number, name, links in ((30, "systemd-logind", {}), (31, "auditd", {"fd/3": "/scratch/log"})):
        files.update({
            f"/proc/{number}/comm": name, f"/proc/{number}/mountinfo": FOLLOWS, f"/proc/{number}/ns/mnt": ("link", f"mnt:[{number}]"),
            **{f"/proc/{number}/{where}": ("link", target) for where, target in links.items()},
        })  # fmt: skip
    assert users(tree(tmp_path, files), "/scratch", "9:127") == ["process 31 (auditd)"]


def test_a_namespace_that_follows_but_has_it_elsewhere_too(tmp_path):
    files = {"/proc/self/mountinfo": ROOT + SCRATCH, "/proc/self/ns/mnt": OWN}
    files.update({
        "/proc/40/comm": "nspawn", "/proc/40/mountinfo": FOLLOWS + "541 529 9:127 /a /srv rw - xfs /dev/md127 rw\n",
        "/proc/40/ns/mnt": ("link", "mnt:[40]"),
    })  # fmt: skip
    assert users(tree(tmp_path, files), "/scratch", "9:127") == ["mount namespace of process 40 (nspawn)"]


def test_a_mount_that_follows_nothing_here(tmp_path):
    """Where the file system above is private, an unmount stays here."""
    files = {"/proc/self/mountinfo": ROOT.replace(" shared:1", "") + SCRATCH, "/proc/self/ns/mnt": OWN}
    files.update({"/proc/50/comm": "auditd", "/proc/50/mountinfo": FOLLOWS, "/proc/50/ns/mnt": ("link", "mnt:[50]")})
    assert users(tree(tmp_path, files), "/scratch", "9:127") == ["mount namespace of process 50 (auditd)"]
