# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel that an administrator installs without its headers, on a machine that boots it: nothing compiles the driver's module."""

import pytest
from cluster import KEEP
from driver_machine import NEWER, DriverMachine, request
from fault_host import last_message

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def machine():
    made = DriverMachine("kernels")
    yield made
    if not KEEP:
        made.down()


def test_10_the_driver_is_compiled_and_loaded(machine):
    run = machine.stack("repository,driver")
    assert run.status == 0, run.output[-6000:]
    assert machine.loaded() == machine.run("modinfo --field version nvidia")
    assert machine.changes() == 0


def test_20_without_headers_it_is_named_and_the_role_says_what_brings_them(machine, tmp_path):
    kernel = machine.run(NEWER).split()[0]
    machine.new_kernel(kernel, "image")
    assert machine.loaded() is None
    found = machine.checked(machine.host, tmp_path, **request("550"))
    assert found["driver_loaded"][0] == "failed", found
    assert found["dkms_module"] == ("failed", "missing"), found
    run = machine.stack()
    assert run.status == 2
    message = last_message(run)
    assert f"no headers of kernel {kernel} are installed: set base_kernel_headers to true and run role base" in message


def test_30_role_base_brings_them_and_the_module_is_compiled(machine, tmp_path):
    run = machine.stack("base,driver")
    assert run.status == 0, run.output[-6000:]
    assert machine.loaded() == machine.run("modinfo --field version nvidia")
    found = machine.checked(machine.host, tmp_path, **request("550"))
    assert (found["driver_loaded"][0], found["dkms_module"][0]) == ("passed", "passed"), found
    assert machine.changes(tags="base,driver") == 0
