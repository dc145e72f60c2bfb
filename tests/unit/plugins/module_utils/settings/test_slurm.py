# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a node for Slurm: its name, capabilities of MIG instances, and what our files say where Slurm reads them."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import slurm
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

MINORS = "config 1\nmonitor 2\ngpu0/gi1/access 3\ngpu0/gi1/ci0/access 4\ngpu0/gi2/access 5\ngpu0/gi2/ci0/access 6\n"
GRES = """# AutoDetect
NodeName=gpu-[1-2] AutoDetect=off Name=gpu Type=a40 File=/dev/nvidia0
nodename=gpu-2   Name=gpu Type=a40 File=/dev/nvidia1
NodeName=gpu-3 Name=gpu
# NodeName=gpu-2 Name=gpu Type=old
Name=gpu File=/dev/nvidia9
"""


def read(place, files, **options):
    return slurm.read_slurm(
        tree(place, {"/proc/sys/kernel/hostname": "gpu-2.example.org\n", **files}), "/etc/slurm", **options
    )


def test_a_node_without_slurm(tmp_path):
    fact = read(tmp_path, {"/proc/meminfo": "MemTotal:  1056270116 kB\n"})
    assert (fact["name"], fact["version"], fact["memory_kib"]) == ("gpu-2", None, 1056270116)
    assert (fact["recorded"], fact["configured"]) == (False, False)
    assert fact["lines"] == {"allreduce_gres.conf": None, "allreduce_nodes.conf": None}
    assert (fact["included"], fact["named"]) == ({}, {})


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ({"scontrol": "slurm 24.11.5\n"}, "24.11.5"),
        ({"scontrol": "slurm-wlm 22.05.8\n"}, "22.05.8"),
        ({"slurmd": "slurm 26.11.0-0rc1\n"}, "26.11.0"),
        ({"scontrol": "scontrol: error: no configuration\n"}, None),
        ({}, None),
    ],
)
def test_the_version_of_slurm(said, version):
    assert slurm.read_version(lambda command: said.get(command[0])) == version


@pytest.mark.parametrize("directory", ["/etc/slurm", "/run/slurm/conf"])
def test_the_lines_about_this_node(tmp_path, directory):
    fact = read(tmp_path, {directory + "/allreduce_gres.conf": GRES})
    assert fact["lines"]["allreduce_gres.conf"] == [
        "AutoDetect=off Name=gpu Type=a40 File=/dev/nvidia0",
        "Name=gpu Type=a40 File=/dev/nvidia1",
    ]


def test_what_a_controller_sent_is_what_slurmd_reads(tmp_path):
    """Not a file that somebody left in /etc."""
    fact = read(tmp_path, {"/etc/slurm/allreduce_gres.conf": GRES, "/run/slurm/conf/slurm.conf": ""})
    assert fact["lines"]["allreduce_gres.conf"] is None


@pytest.mark.parametrize(
    ("line", "included"),
    [
        ("Include allreduce_nodes.conf", True),
        ("  include   /etc/slurm/allreduce_nodes.conf", True),
        ("#Include allreduce_nodes.conf", False),
        ("Include /opt/allreduce_nodes.conf", False),
        ("Include other.conf", False),
    ],
)
def test_what_the_clusters_file_includes(tmp_path, line, included):
    fact = read(tmp_path, {"/etc/slurm/slurm.conf": "ClusterName=a\n" + line + "\n"})
    assert fact["included"] == ({"/etc/slurm/allreduce_nodes.conf": ["/etc/slurm/slurm.conf:2"]} if included else {})
    assert fact["configured"]


def test_included_files_are_followed_and_files_that_were_written_elsewhere_looked_for(tmp_path):
    record = '{"format": 1, "boot": null, "files": {"/opt/slurm/allreduce_gres.conf": null}, "values": {}}'
    files = {
        "/etc/slurm/slurm.conf": "Include more.conf\nInclude slurm.conf\n",
        "/etc/slurm/more.conf": "\nInclude more.conf\ninclude allreduce_nodes.conf # ours\n",
        "/opt/slurm/gres.conf": "Include allreduce_gres.conf\n", "/var/lib/allreduce/slurm.json": record,
    }  # fmt: skip
    assert read(tmp_path, files)["included"] == {
        "/etc/slurm/allreduce_nodes.conf": ["/etc/slurm/more.conf:3"],
        "/opt/slurm/allreduce_gres.conf": ["/opt/slurm/gres.conf:1"],
    }


NAMED = "\n#Epilog=/opt/allreduce/lib/slurm/epilog\nProlog = /opt/allreduce/lib/slurm/prolog\nTaskProlog=/opt/other\n"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"/etc/slurm/slurm.conf": NAMED}, "/etc/slurm/slurm.conf:3"),
        ({"/etc/slurm/slurm.conf": "", "/run/slurm/conf/slurm.conf": NAMED}, "/run/slurm/conf/slurm.conf:3"),
        ({"/etc/slurm/slurm.conf": "Include /srv/a.conf", "/srv/a.conf": NAMED}, "/srv/a.conf:3"),
        ({"/etc/slurm/slurm.conf": NAMED, "/run/slurm/conf/slurm.conf": ""}, None),
        ({"/etc/slurm/slurm.conf": slurm.OURS + NAMED}, None),
    ],
    ids=["a file of its own", "sent", "included", "left over", "ours"],
)
def test_which_keys_name_our_programs(tmp_path, files, place):
    assert read(tmp_path, files)["named"] == ({"Prolog": place} if place else {})


def test_a_name_that_is_given(tmp_path):
    fact = read(tmp_path, {"/etc/slurm/allreduce_gres.conf": GRES}, name="gpu-3")
    assert (fact["name"], fact["lines"]["allreduce_gres.conf"]) == ("gpu-3", ["Name=gpu"])


def test_what_is_no_file_is_not_read(tmp_path):
    (tmp_path / "etc/slurm/allreduce_gres.conf").mkdir(parents=True)
    assert read(tmp_path, {})["lines"]["allreduce_gres.conf"] is None


@pytest.mark.parametrize(
    ("instances", "found"),
    [
        ([], {"gpu0/gi1/access": 3, "gpu0/gi1/ci0/access": 4, "gpu0/gi2/access": 5, "gpu0/gi2/ci0/access": 6}),
        (["gi2/access", "gi2/ci0/access"], {"gpu0/gi2/access": 5, "gpu0/gi2/ci0/access": 6}),
    ],
    ids=["a driver that does not show them", "those that there are"],
)
def test_capabilities(tmp_path, instances, found):
    files = {"/proc/driver/nvidia/capabilities/gpu0/mig/" + one: "DeviceFileMinor: 0\n" for one in instances}
    assert slurm.read_capabilities(tree(tmp_path, dict(files, **{slurm.CAPABILITIES: MINORS}))) == found
