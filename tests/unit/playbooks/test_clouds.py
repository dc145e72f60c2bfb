# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of AWS on two instances as its API describes them; Ansible's own Constructable evaluates it, and AWS is not asked.

The plugin is amazon.aws 11, plugins/inventory/aws_ec2.py: _prepare_host_vars makes variables of what AWS says, here repeated with the
same function of Ansible. The instances have the layout of the EC2 API Reference, Instance and InstanceNetworkInterface.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.dict_transformations import camel_dict_to_snake_dict

from tests.support.command import CHECKOUT, play

SOURCE = CHECKOUT / "inventories" / "aws"
PLUGIN = yaml.safe_load((SOURCE / "aws_ec2.yml").read_text(encoding="utf-8"))
INSTANCES = json.loads((CHECKOUT / "tests/fixtures/clouds/describe_instances.json").read_text(encoding="utf-8"))
# Those of ansible-doc -t inventory amazon.aws.aws_ec2 that are no credentials.
OPTIONS = {
    "allow_duplicated_hosts", "compose", "exclude_filters", "filters", "groups", "hostnames", "hostvars_prefix", "hostvars_suffix",
    "include_filters", "keyed_groups", "leading_separator", "plugin", "regions", "strict", "strict_permissions",
    "use_extra_vars", "use_ssm_inventory",
}  # fmt: skip
FIRST, SECOND = "ip-10-0-0-11.ec2.internal", "ip-10-0-0-12.ec2.internal"


def variables(instance):
    """What the plugin makes of one instance."""
    found = camel_dict_to_snake_dict(instance, ignore_list=["Tags"])
    found["tags"] = found["ec2_tags"] = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    found["placement"]["region"] = found["placement"]["availability_zone"][:-1]
    return {PLUGIN["hostvars_prefix"] + name: value for name, value in found.items()}


def write(directory, instances=None):
    """Write the inventory with the instances as a file, and the same expressions for Ansible's own plugin for them."""
    place = directory / "inventory"
    shutil.copytree(SOURCE / "group_vars", place / "group_vars")
    (attribute,) = PLUGIN["hostnames"]
    names = {"private-dns-name": "PrivateDnsName"}  # instance_data_filter_to_boto_attr of the plugin
    hosts = {one[names[attribute]]: variables(one) for one in instances or INSTANCES}
    (place / "1_instances.yml").write_text(yaml.safe_dump({"aws_ec2": {"hosts": hosts}}), encoding="utf-8")
    expressions = {name: PLUGIN[name] for name in ("compose", "keyed_groups", "strict")}
    constructed = {"plugin": "ansible.builtin.constructed", **expressions}
    (place / "2_constructed.yml").write_text(yaml.safe_dump(constructed), encoding="utf-8")


def listed(directory):
    """Return what ansible-inventory says of it, or its error."""
    argv = [Path(sys.executable).parent / "ansible-inventory", "-i", directory / "inventory", "--list"]
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
    }
    done = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


@pytest.fixture(scope="module")
def inventory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("aws")
    write(directory)
    return listed(directory)


def test_the_plugin_has_these_options():
    assert set(PLUGIN) - OPTIONS == set()
    assert PLUGIN["plugin"] == "amazon.aws.aws_ec2"


def test_every_instance_is_a_gpu_node_by_its_type(inventory):
    assert sorted(inventory["gpu_nodes"]["children"]) == ["instance_type_p4d_24xlarge", "instance_type_p5_48xlarge"]
    assert inventory["instance_type_p5_48xlarge"]["hosts"] == [FIRST]
    assert inventory["instance_type_p4d_24xlarge"]["hosts"] == [SECOND]


@pytest.mark.parametrize(("host", "address", "ports"), [(FIRST, "10.0.0.11", 2), (SECOND, "10.0.0.12", 1)])
def test_addresses_and_the_number_of_efas_are_those_of_the_cloud(inventory, host, address, ports):
    """Also where an instance has a public address."""
    found = inventory["_meta"]["hostvars"][host]
    assert (found["ansible_host"], found["gpu_cluster_address"], found["verify_nic_ports"]) == (address, address, ports)
    assert found["gpu_stack_request"]["driver_source"] == "vendor"


def test_an_instance_without_an_address_is_an_error(tmp_path):
    write(tmp_path, [{name: value for name, value in INSTANCES[0].items() if name != "PrivateIpAddress"}])
    assert "aws_private_ip_address" in listed(tmp_path)


def test_preflight_accepts_the_hosts(tmp_path):
    write(tmp_path)
    run = play(tmp_path, "preflight")
    assert run.status == 0, run.output
    assert not run.contacted
    assert "WARNING" not in run.output


def test_preflight_looks_at_their_addresses(tmp_path):
    """So that its word above means something."""
    write(tmp_path, [{**one, "PrivateIpAddress": "10.0.0.11"} for one in INSTANCES])
    run = play(tmp_path, "preflight")
    assert run.status != 0
    assert f"{FIRST}, {SECOND} have the same cluster address 10.0.0.11" in run.words, run.output
