# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that come compiled: nothing is built on the host, and the kernel stays with them."""


def test_nothing_is_built_on_the_host(host, stack):
    version = stack["driver"]["version"]
    ready = host.check_output("rpm -qa 'kmod-nvidia*'").split()
    assert len(ready) == 1
    assert ready[0].startswith(f"kmod-nvidia-{version}-")
    assert host.run("dkms status nvidia").stdout == ""
    found = host.check_output("find /lib/modules -name 'nvidia.ko*' | xargs -n1 modinfo -F version").split()
    assert found == [version]


def test_the_kernel_is_held(host):
    locked = host.check_output("dnf -q versionlock list").splitlines()
    kernels = host.check_output("rpm -qa --queryformat '%{NAME}\\n' 'kernel*'").split()
    assert kernels
    assert [name for name in kernels if not any(line.startswith(f"{name}-") for line in locked)] == []
