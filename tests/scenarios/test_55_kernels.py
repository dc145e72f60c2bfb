# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that run an older kernel than their repositories have: the kernel of the next boot is whole and has the module."""

import re

import pytest
from cluster import CORE_216, KEEP
from fault_host import FaultHost, stopped

pytestmark = pytest.mark.lab


@pytest.fixture(scope="class")
def host(request):
    """A host that has the older kernel, and runs it as far as a container can look so."""
    kind = request.cls
    made = FaultHost(f"kernels-{kind.distribution}", kind.distribution, "a40-pcie", {"driver": "550"})
    if kind.distribution == "rocky8":
        made.programs = CORE_216
    made.run(kind.install_old)
    made.run(
        f"mkdir -p /etc/lab && echo {kind.old} > /etc/lab/osrelease"
        " && mount --bind /etc/lab/osrelease /proc/sys/kernel/osrelease"
    )
    yield made
    if not KEEP:
        made.down()


def modules(host):
    """{kernel: version} that DKMS has built and installed."""
    found = re.findall(r"(?m)^nvidia[\w-]*/([\d.]+), ([^,]+), .*: installed", host.run("dkms status"))
    return {kernel: version for version, kernel in found}


def packages(host, pattern):
    """{name-version-release} of what rpm has."""
    return set(host.run(f"rpm -qa '{pattern}' --qf '%{{NAME}}-%{{VERSION}}-%{{RELEASE}}\\n'").split())


def converged(host, **variables):
    run = host.stack(**variables)
    assert run.status == 0, run.output[-6000:]
    return run


class EnterpriseLinux:
    """dnf: what EPEL's dkms asks for, and what a kernel consists of."""

    def test_no_newer_kernel_comes_with_the_driver(self, host):
        converged(host)
        assert packages(host, "kernel-core") == {f"kernel-core-{self.release(self.old)}"}
        assert list(modules(host)) == [self.old]

    def test_again_changes_nothing(self, host):
        assert converged(host).recap[host.host]["changed"] == 0

    def test_headers_that_no_repository_has_stop_the_run_before_it_installs_anything(self, host):
        host.run(f"rpm -e --nodeps kernel-devel-{self.release(self.old)}")
        host.run(f"echo excludepkgs=kernel-devel-{self.release(self.old)} >> /etc/dnf/dnf.conf")
        before = host.run("rpm -qa | sort")
        run = host.stack("base", base_packages=["linux-firmware"])
        stopped(run, f"no repository of {host.host} has kernel-devel-{self.old}", "vault", "nothing was installed")
        assert host.run("rpm -qa | sort") == before
        host.run("sed -i /excludepkgs/d /etc/dnf/dnf.conf")
        converged(host)
        assert list(modules(host)) == [self.old]

    def test_half_a_kernel_is_completed_and_gets_the_module(self, host):
        """What dkms alone brings: the core of the newest kernel, which the next boot would take."""
        host.run(f"dnf -y -q install kernel-core-{self.release(self.new)}")
        assert self.new in host.run("cat /boot/grub2/grubenv")
        assert packages(host, "kernel-modules") == {f"kernel-modules-{self.release(self.old)}"}
        converged(host)
        for part in ("kernel", "kernel-modules", "kernel-devel"):
            assert f"{part}-{self.release(self.new)}" in packages(host, part)
        assert sorted(modules(host)) == sorted([self.old, self.new])
        assert converged(host).recap[host.host]["changed"] == 0

    def test_a_kernel_that_is_not_booted_needs_no_module(self, host):
        """The administrator stays with the older kernel, as grubby --set-default does it."""
        host.run(f"dkms uninstall -m $(ls /var/lib/dkms | grep nvidia) -v {modules(host)[self.old]} -k {self.new}")
        host.run(f"sed -i 's/^saved_entry=.*/saved_entry='$(cat /etc/machine-id)-{self.old}/ /boot/grub2/grubenv")
        converged(host)
        assert list(modules(host)) == [self.old]

    @staticmethod
    def release(kernel):
        return kernel.removesuffix(".x86_64")


class TestRocky9(EnterpriseLinux):
    distribution = "rocky9"
    old, new = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-570.12.1.el9_6.x86_64"
    install_old = "dnf -y -q install kernel-5.14.0-427.13.1.el9_4"

    def test_left_to_itself_dkms_would_bring_half_a_kernel(self, host):
        """The relation that all this is about is in the repository."""
        said = host.run(
            "dnf -q repoquery --requires dkms && dnf -q repoquery --requires kernel-core | grep modules-uname-r || true"
        )
        assert "(kernel-devel-matched if kernel-core)" in said
        assert "kernel-modules-uname-r" not in said


class TestRocky8(EnterpriseLinux):
    distribution = "rocky8"
    old, new = "4.18.0-513.5.1.el8_9.x86_64", "4.18.0-553.el8_10.x86_64"
    install_old = "dnf -y -q install kernel-4.18.0-513.5.1.el8_9"


class TestUbuntuHwe:
    """apt: a kernel of a series with metapackages of its own."""

    distribution = "ubuntu2204"
    old, new = "6.8.0-60-generic", "6.8.0-84-generic"
    series = "generic-hwe-22.04"
    install_old = (
        "apt-get -q update && apt-get -y -q install --no-install-recommends"
        f" linux-image-{series}=6.8.0-60.60~22.04.1 linux-image-{old} linux-modules-extra-{old}"
    )

    def test_headers_follow_the_series(self, host):
        converged(host)
        known = host.run("dpkg-query -W -f '${db:Status-Status} ${Package}\\n' 'linux-headers-*'").splitlines()
        found = [line.split()[1] for line in known if line.startswith("installed ")]
        assert {f"linux-headers-{self.series}", f"linux-headers-{self.old}"} <= set(found)
        assert "linux-headers-generic" not in found
        assert not [name for name in found if "5.15" in name]
        assert self.old in modules(host)

    def test_again_changes_nothing(self, host):
        assert converged(host).recap[host.host]["changed"] == 0

    def test_the_next_kernel_of_the_series_comes_with_the_module(self, host):
        host.run(f"apt-get -y -q install --no-install-recommends linux-image-{self.series}")
        assert modules(host)[self.new] == modules(host)[self.old]
        assert converged(host).recap[host.host]["changed"] == 0
