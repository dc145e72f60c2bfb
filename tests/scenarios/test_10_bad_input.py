# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input on bare hosts: one clear sentence, and nothing is touched."""

import pytest

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", autouse=True)
def bare(cluster):
    """Whatever happens in this file, the hosts end as they began."""
    before = cluster.fingerprints()
    yield before
    assert cluster.fingerprints() == before


def refused(run, *sentences):
    """The run failed before any task changed a host, and said SENTENCES: names alone stand in every recap and task."""
    assert run.status != 0, run.output
    assert [sentence for sentence in sentences if sentence not in run.words] == [], run.output
    assert run.recap, run.output
    assert all(counts["changed"] == 0 for counts in run.recap.values()), run.output
    assert "Traceback" not in run.output


def test_plan_shows_what_and_why(cluster):
    run = cluster.play("playbooks/plan.yml")
    assert run.status == 0, run.output
    assert "535" in run.output
    assert "2.13.0" in run.output
    assert "asked for as 535" in run.words
    assert "end of life" in run.words
    assert "[WARNING]: Failed to parse" not in run.output
    assert (cluster.inventory / "stack.lock.yml").exists()


@pytest.mark.parametrize("options", [[], ["--limit", "cluster-1"]], ids=["all", "limited"])
def test_no_host_in_the_group(cluster, tmp_path, options):
    def rename(inventory):
        return {"gpu_servers": inventory["gpu_nodes"]}

    inventory = cluster.edit_inventory(tmp_path, rename)
    run = cluster.play("playbooks/site.yml", *options, inventory=inventory)
    refused(run, "has no hosts in the group gpu_nodes; list the hosts with GPUs there.")


def test_an_address_that_two_hosts_share(cluster, tmp_path):
    def share(inventory):
        for host in inventory["gpu_nodes"]["hosts"].values():
            host["gpu_cluster_address"] = "192.0.2.1"

    inventory = cluster.edit_inventory(tmp_path, share)
    run = cluster.play("playbooks/verify.yml", inventory=inventory)
    refused(run, "cluster-1, cluster-2 have the same cluster address 192.0.2.1; set gpu_cluster_address of each")


def test_unreachable_host(cluster, tmp_path):
    def add(inventory):
        free = inventory["gpu_nodes"]["hosts"]["cluster-1"]["ansible_host"].rsplit(".", 1)[0] + ".250"
        inventory["gpu_nodes"]["hosts"]["cluster-9"] = {"ansible_host": free}

    inventory = cluster.edit_inventory(tmp_path, add)
    run = cluster.play("playbooks/site.yml", "-e", "ansible_ssh_timeout=5", inventory=inventory)
    refused(run, "1 of 3 nodes cannot be reached, so nothing was touched: cluster-9; check power, address, SSH user")


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        (
            ["-e", "nvidia_driver_without_gpus=true"],
            [
                "Unknown variable nvidia_driver_without_gpus (set on the command line); did you mean nvidia_driver_without_gpu?"
            ],
        ),
        (
            ["-e", '{"gpu_stack_request": {"driver": "999"}}'],
            ["conflict driver '999' is not known fix the nearest known ones are"],
        ),
        (
            ["-e", '{"gpu_stack_request": {"driver": "535", "pytorch": "9.9.9"}}'],
            ["conflict pytorch '9.9.9' is not known fix the nearest known ones are"],
        ),
        (
            ["-e", '{"gpu_stack_request": {"drivr": "535"}}'],
            ["gpu_stack_request.drivr (set on the command line) is not a known key; did you mean driver?"],
        ),
        (
            ["-e", '{"gpu_stack_request": {"driver": "5x5"}}'],
            ["conflict driver is '5x5', which is not a version", "fix write a version"],
        ),
        (
            ["-e", "gpu_package_lock_timeout=soon"],
            ["gpu_package_lock_timeout (set on the command line) is 'soon'; set it to a whole number."],
        ),
    ],
    ids=["misspelt-variable", "no-such-driver", "no-such-pytorch", "misspelt-request", "version-syntax", "wrong-type"],
)
def test_wrong_variable(cluster, options, sentences):
    refused(cluster.play("playbooks/site.yml", *options), *sentences)


def test_unsupported_distribution(cluster):
    host = cluster.hosts[0]
    cluster.on(host, "cp -a /usr/lib/os-release /tmp/os-release; sed -i 's/bookworm/buster/; s/12/10/' /usr/lib/os-release;"
                     " cp -a /etc/debian_version /tmp/; echo 10.13 > /etc/debian_version")  # fmt: skip
    try:
        refused(cluster.play("playbooks/site.yml"), "conflict Operating system 'debian 10.13' is not supported")
    finally:
        cluster.on(host, "cp -a /tmp/os-release /usr/lib/os-release; cp -a /tmp/debian_version /etc/debian_version")


def test_full_disk(cluster):
    host = cluster.hosts[1]
    cluster.on(host, "mount -t tmpfs -o size=50m tmpfs /opt")
    try:
        refused(cluster.play("playbooks/site.yml"), f"{host}: 50 MiB are free under /opt, but")
    finally:
        cluster.on(host, "umount /opt")


def test_no_such_training_script(cluster):
    run = cluster.play("playbooks/train.yml", "-e", "train_script=no/such/script.py")
    refused(run, "train_script names no/such/script.py, which does not exist in")


def test_check_mode_on_bare_hosts(cluster):
    run = cluster.play("playbooks/site.yml", "--check", "--diff")
    assert run.status == 0, run.output
    assert all(counts["failed"] == 0 and counts["unreachable"] == 0 for counts in run.recap.values()), run.output
    assert all(run.recap[host]["changed"] > 0 for host in cluster.hosts), "a bare host has something to change"
