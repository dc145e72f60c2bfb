# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole way on a recorded node: make, again, take down, bring back, make anew, refuse."""

import json
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.describe import describe
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.scratch import settle, take_down
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.storage_helper import MODEL, SIZE, Node
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

WANTED = {
    "disks": [], "count": 0, "minimum": 0, "name": "scratch", "mount_point": "/scratch", "options": ["noatime", "nofail"],
    "chunk_kib": 512, "uid": os.getuid(), "gid": os.getgid(), "mode": "0750", "trim": True, "problems": [],
}  # fmt: skip
TWO = ("nvme0n1", "nvme1n1")
ARRAY = "ARRAY /dev/md/scratch metadata=1.2 UUID=00000001:00004000:80000000:00000000"
MOUNT = "UUID=00000002-0000-4000-8000-000000000000 /scratch xfs noatime,nofail 0 0"


def node(root, *names, **options):
    made = Node(root, **options)
    for name in names or TWO:
        made.disk(name)
    return made


def kinds(answer):
    assert answer["problems"] == [], [describe(one) for one in answer["problems"]]
    return [one["kind"] for one in answer["changes"]]


def codes(answer):
    return [one["code"] for one in answer["problems"]]


@pytest.mark.parametrize("debian", [True, False])
def test_an_array(tmp_path, debian):
    here = node(tmp_path, debian=debian)
    before = snapshot(tmp_path)
    wanted = kinds(settle(here.machine(), WANTED, check=True))
    assert snapshot(tmp_path) == before and here.calls == []
    here.uuids = iter(["00000001-0000-4000-8000-000000000000", "00000002-0000-4000-8000-000000000000"])
    assert kinds(settle(here.machine(), WANTED)) == wanted
    assert wanted == ["file", "file", "initramfs", "directory", "array", "filesystem", "mount", "owner", "timer"]
    conf = "/etc/mdadm/mdadm.conf" if debian else "/etc/mdadm.conf"
    assert here.tree.text(conf).splitlines()[-1] == ARRAY and here.tree.text("/etc/fstab").splitlines()[-1] == MOUNT
    update = ["update-initramfs", "-u", "-k", "all"] if debian else ["dracut", "--force", "--regenerate-all"]
    assert update in here.calls
    assert here.calls.index(update) < len(here.calls)
    create = next(one for one in here.calls if "--create" in one)
    assert {"--homehost=any", "--name=scratch", "--level=0", "--chunk=512", "--raid-devices=2"} <= set(create)
    assert "--run" not in create and "--force" not in create
    make = next(one for one in here.calls if one[0] == "mkfs.xfs")
    assert make[make.index("-d") + 1] == "su=512k,sw=2" and make[make.index("-l") + 1] == "su=32k" and "-f" not in make
    assert (tmp_path / "scratch").stat().st_mode & 0o777 == 0o750
    here.calls = []
    assert kinds(settle(here.machine(), WANTED)) == [] and here.calls == []


def test_one_disk(tmp_path):
    here = node(tmp_path, "nvme0n1")
    assert kinds(settle(here.machine(), WANTED)) == ["file", "directory", "filesystem", "mount", "owner", "timer"]
    assert not any(one[0] == "mdadm" for one in here.calls)
    assert kinds(settle(here.machine(), WANTED)) == []


def test_the_root_of_a_new_file_system_is_labelled_once(tmp_path):
    """It has no label, and what is made below one without a label has none either."""
    here = node(tmp_path, "nvme0n1")
    settle(here.machine(), WANTED, check=True)
    assert here.labelled == []
    settle(here.machine(), WANTED)
    settle(here.machine(), WANTED)
    assert here.labelled == [("/scratch", True)]


def test_taken_down_and_back(tmp_path):
    here = node(tmp_path)
    settled, before = {}, {path: here.tree.text(path) for path in ("/etc/fstab", "/etc/mdadm/mdadm.conf")}
    assert kinds(settle(here.machine(), WANTED))
    settled = {path: here.tree.text(path) for path in before}
    assert kinds(take_down(here.machine(), False, check=True)) == kinds(take_down(here.machine(), False))
    assert {path: here.tree.text(path) for path in before} == before
    assert not here.tree.exists("/scratch") and "md127" not in here.tree.names("/sys/block")
    assert not here.tree.exists("/etc/systemd/system/timers.target.wants/fstrim.timer")
    assert not here.tree.exists("/var/lib/allreduce/scratch.json")
    assert [one[3] for one in here.signatures["/dev/nvme0n1"]] == ["linux_raid_member"]
    assert not any(one[0] == "wipefs" for one in here.calls)
    assert kinds(take_down(here.machine(), False)) == []
    here.calls = []
    assert "assembly" in kinds(settle(here.machine(), WANTED))
    assert not any("--create" in one or one[0] == "mkfs.xfs" for one in here.calls)
    assert {path: here.tree.text(path) for path in before} == settled
    assert not here.tree.exists("/var/lib/allreduce/scratch-stopped.json")
    assert kinds(settle(here.machine(), WANTED)) == []


@pytest.mark.parametrize("names", [TWO, TWO[:1]])
def test_data_is_destroyed_on_demand(tmp_path, names):
    here = node(tmp_path, *names)
    assert kinds(settle(here.machine(), WANTED))
    assert kinds(take_down(here.machine(), True)).count("destruction") == (3 if len(names) > 1 else 1)
    assert not any(here.signatures.values())
    assert here.tree.names("/var/lib/allreduce") == []
    assert kinds(settle(here.machine(), WANTED))


def test_in_use(tmp_path):
    here = node(tmp_path)
    assert kinds(settle(here.machine(), WANTED))
    here.write("/proc/7/comm", "python3\n")
    (tmp_path / "proc/7/cwd").symlink_to("/scratch/imagenet")
    before, here.calls = snapshot(tmp_path), []
    answer = take_down(here.machine(), False)
    assert (
        codes(answer) == ["in_use"] and describe(answer["problems"][0]) == "/scratch is in use by process 7 (python3)"
    )
    assert here.calls == [] and snapshot(tmp_path) == before


@pytest.mark.parametrize("names", [TWO, TWO[:1]])
def test_made_anew_after_a_stop(tmp_path, names):
    """A cloud gives other disks of the same kind; the lines of fstab and mdadm.conf stay right."""
    here = node(tmp_path, *names)
    assert kinds(settle(here.machine(), WANTED))
    here.replace_disks(*names)
    (tmp_path / "scratch").chmod(0)
    found = kinds(settle(here.machine(), WANTED))
    assert found == (["array"] if len(names) > 1 else []) + ["filesystem", "mount", "owner"]
    assert [one["serial"] for one in json.loads(here.tree.text("/var/lib/allreduce/scratch.json"))["disks"]][
        0
    ] == "NEW0"
    assert kinds(settle(here.machine(), WANTED)) == []


def spoil_size(here):
    here.replace_disks(*TWO)
    here.write("/sys/block/nvme1n1/size", "1000\n")


def spoil_number(here):
    here.replace_disks(*TWO)
    here.disk("nvme2n1")


def spoil_model(here):
    here.replace_disks(*TWO)
    here.write("/sys/block/nvme1n1/device/model", "Amazon EC2 NVMe Instance Storage\n")


def spoil_blank(here):
    here.replace_disks(*TWO)
    here.signatures["/dev/nvme1n1"].append((0x438, "1-2", "", "ext4"))


def lose_one(here):
    here.unmount_all()
    here._mdadm(["--stop", "/dev/md127"])
    here.signatures["/dev/nvme1n1"] = []


def strange_content(here):
    here.unmount_all()
    here.signatures["/dev/md127"] = [(0x438, "1-2", "", "ext4")]


def other_mount(here):
    here.unmount_all()
    with open(str(here.root / "proc/self/mountinfo"), "a") as stream:
        stream.write("40 29 0:44 / /scratch rw - tmpfs none rw\n")


def fill_directory(here):
    here.unmount_all()
    here.write("/scratch/left-behind", "")


def other_line(here):
    here.write("/etc/fstab", "/dev/sdz1 /scratch ext4 defaults 0 2\n")


def other_array(here):
    here.write("/etc/mdadm/mdadm.conf", "ARRAY /dev/md/scratch UUID=1:2:3:4\n")


def unreadable(here):
    here.unmount_all()
    here.signatures["/dev/md127"] = None


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (spoil_size, ["record_does_not_fit"]),
        (spoil_number, ["record_does_not_fit"]),
        (spoil_model, ["record_does_not_fit"]),
        (spoil_blank, ["record_does_not_fit", "filesystem"]),
        (lose_one, ["members_missing"]),
        (strange_content, ["foreign_content"]),
        (other_mount, ["mount_point_taken"]),
        (fill_directory, ["mount_point_not_empty"]),
        (other_line, ["fstab_taken"]),
        (other_array, ["array_taken"]),
        (unreadable, ["not_examined"]),
    ],
)
def test_refused_and_left_as_it_is(tmp_path, spoil, expected):
    here = node(tmp_path)
    assert kinds(settle(here.machine(), WANTED))
    (tmp_path / "scratch").chmod(0o755)
    spoil(here)
    before, here.calls = snapshot(tmp_path), []
    answer = settle(here.machine(), WANTED)
    assert codes(answer)[: len(expected)] == expected and all(describe(one) for one in answer["problems"])
    assert here.calls == [] and answer["changes"] == [] and snapshot(tmp_path) == before


@pytest.mark.parametrize(("key", "value"), [("mount_point", "/other"), ("name", "fast"), ("chunk_kib", 64)])
def test_what_cannot_be_made_otherwise(tmp_path, key, value):
    here = node(tmp_path)
    assert kinds(settle(here.machine(), WANTED))
    assert codes(settle(here.machine(), dict(WANTED, **{key: value}))) == ["fixed"]


@pytest.mark.parametrize("fails", ["mdadm", "mkfs.xfs", "mount", "update-initramfs", "systemctl"])
def test_interrupted_and_continued(tmp_path, fails):
    """What failed is told with its command; the next run goes on where it stopped, and does nothing twice."""
    here = node(tmp_path)
    here.fails = fails
    answer = settle(here.machine(), WANTED)
    assert codes(answer) == ["command_failed"] and answer["problems"][0]["subject"].startswith(fails)
    here.fails, here.calls = None, []
    assert kinds(settle(here.machine(), WANTED))
    assert ["update-initramfs", "-u", "-k", "all"] in here.calls or fails != "update-initramfs"
    assert kinds(settle(here.machine(), WANTED)) == []
    assert [one[3] for one in here.signatures["/dev/md127"]] == ["xfs"]


@pytest.mark.parametrize("destroy", [False, True])
@pytest.mark.parametrize("fails", ["umount", "update-initramfs", "mdadm", "systemctl"])
def test_a_removal_that_is_interrupted_is_continued(tmp_path, fails, destroy):
    here = node(tmp_path)
    assert kinds(settle(here.machine(), WANTED))
    here.fails, here.calls = fails, []
    assert codes(take_down(here.machine(), destroy)) == ["command_failed"]
    here.fails, here.calls = None, []
    assert kinds(take_down(here.machine(), destroy))
    assert ["update-initramfs", "-u", "-k", "all"] in here.calls or fails != "update-initramfs"
    assert not here.tree.exists("/scratch") and "md127" not in here.tree.names("/sys/block")
    assert kinds(take_down(here.machine(), destroy)) == []


def test_options_that_the_kernel_shows_in_other_words(tmp_path):
    here, options = node(tmp_path), ["noatime", "allocsize=64m", "logbsize=262144", "pquota", "exec", "dev", "nofail"]
    assert kinds(settle(here.machine(), dict(WANTED, options=options)))
    assert kinds(settle(here.machine(), dict(WANTED, options=options))) == []


def test_an_option_is_added(tmp_path):
    here = node(tmp_path)
    assert kinds(settle(here.machine(), WANTED))
    answer = settle(here.machine(), dict(WANTED, options=["noatime", "lazytime", "nofail"]), check=True)
    assert kinds(answer) == ["file", "remount"] and answer["changes"][1]["command"][:3] == [
        "mount",
        "-o",
        "remount,lazytime",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"count": 3}, ["count_differs"]),
        ({"minimum": 2 * SIZE + 1}, ["too_small"]),
        ({"disks": ["/dev/nvme0n1", "/dev/nvme9n1"]}, ["no_disk"]),
        ({"disks": ["/dev/nvme0n1", "/dev/nvme0n1"]}, ["named_twice"]),
        ({"problems": [{"code": "owner_missing", "subject": "nobody", "detail": {}}]}, ["owner_missing"]),
    ],
)
def test_asked_for_what_is_not_there(tmp_path, change, expected):
    here = node(tmp_path)
    answer = settle(here.machine(), dict(WANTED, **change))
    assert codes(answer) == expected and here.calls == [] and all(describe(one) for one in answer["problems"])
    assert not here.tree.exists("/var/lib/allreduce/scratch.json")


def test_disks_of_other_sizes(tmp_path):
    here = node(tmp_path)
    here.disk("nvme2n1", size=SIZE * 2, model=MODEL)
    assert codes(settle(here.machine(), WANTED)) == ["sizes_differ"]
    assert kinds(settle(here.machine(), dict(WANTED, disks=["/dev/nvme0n1", "/dev/nvme1n1"])))


def test_a_node_without_a_blank_disk(tmp_path):
    here = node(tmp_path, "nvme0n1")
    here.signatures["/dev/nvme0n1"].append((0x200, "", "", "gpt"))
    before = snapshot(tmp_path)
    answer = settle(here.machine(), WANTED)
    assert kinds(answer) == [] and answer["left"] == "none_blank" and snapshot(tmp_path) == before
    assert [describe(one) for one in answer["seen"]] == ["/dev/nvme0n1 has a partition table (gpt at 512)"]
    assert codes(settle(here.machine(), dict(WANTED, disks=["/dev/nvme0n1"]))) == ["partition_table"]
    assert codes(settle(here.machine(), dict(WANTED, count=1))) == ["count_differs", "partition_table"]


def test_a_container_is_left_alone(tmp_path):
    here = node(tmp_path)
    here.write("/run/.containerenv", "")
    answer = settle(here.machine(), WANTED)
    assert answer["left"] == "container" and kinds(answer) == [] and here.calls == []


def test_a_record_of_another_release(tmp_path):
    here = node(tmp_path)
    here.write("/var/lib/allreduce/scratch.json", '{"format": 9}')
    with pytest.raises(ValueError, match="format 9"):
        settle(here.machine(), WANTED)
