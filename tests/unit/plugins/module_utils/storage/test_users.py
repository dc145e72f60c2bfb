# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a mounted scratch, on a recorded /proc."""

from ansible_collections.allreduce.gpu.plugins.module_utils.storage.users import users
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

ROOT = "29 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
SCRATCH = "40 29 9:127 / /scratch rw - xfs /dev/md127 rw\n"
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
    for number, name, mounts in ((20, "torchrun", SCRATCH), (21, "python3", SCRATCH), (22, "nginx", ROOT)):
        files.update({
            f"/proc/{number}/comm": name, f"/proc/{number}/mountinfo": mounts,
            f"/proc/{number}/ns/mnt": ("link", f"mnt:[{1 if number < 22 else 2}]"),
        })  # fmt: skip
    assert users(tree(tmp_path, files), "/scratch", "9:127") == ["mount namespace of process 20 (torchrun)"]
