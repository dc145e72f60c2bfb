# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package sources of Enterprise Linux: what a subscription has to enable, EPEL from elsewhere, and a server that is gone."""

import pytest
from cluster import CORE_216, KEEP
from fault_host import FaultHost, stopped

pytestmark = pytest.mark.lab


class Sources:
    """A host of DISTRIBUTION."""

    distribution = ""

    @pytest.fixture(scope="class")
    def host(self, request):
        name = request.cls.distribution
        made = FaultHost(f"sources-{name}", name, "a40-pcie", {"driver": "550", "pytorch": "none"})
        if name.endswith("8"):
            made.programs = CORE_216
        yield made
        if not KEEP:
            made.down()

    def converges_once(self, host, **variables):
        """The role succeeds, and changes nothing when it runs again."""
        run = host.stack("base", **variables)
        assert run.status == 0, run.output[-4000:]
        again = host.stack("base", **variables)
        assert again.recap[host.host]["changed"] == 0, again.output[-4000:]


def enabled(host):
    """Names of the repositories that dnf uses."""
    return {line.split()[0] for line in host.run("dnf -q repolist --enabled").splitlines()[1:]}


class TestRhel(Sources):
    """Repositories of the subscription, EPEL from the Fedora project."""

    distribution = "rhel9"

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            ({"base_epel_key_fingerprint": "0" * 40}, ["EPEL cannot be set up on", "base_epel_key"]),
            (
                {"base_epel_release": "http://127.0.0.1:1/epel.rpm"},
                ["EPEL cannot be set up on", "base_epel_release and base_epel_key"],
            ),
        ],
        ids=["another key", "no network"],
    )
    def test_without_epel_it_says_what_can_be_done(self, host, variables, words):
        stopped(host.stack("base", **variables), *words)
        assert "epel" not in enabled(host)

    def test_epel_and_the_subscriptions_repository_for_developers(self, host):
        before = enabled(host)
        self.converges_once(host)
        assert enabled(host) - before == {"epel"} | ({"codeready-builder-for-rhel-9-x86_64-rpms"} - before)
        assert "codeready-builder-for-rhel-9-x86_64-rpms" in enabled(host)
        assert "dkms" in host.run("rpm -q epel-release && dnf -q repoquery dkms")


class TestRocky(Sources):
    """Repositories of the rebuild, and a mirror of them."""

    distribution = "rocky9"

    def test_the_repository_for_developers_is_enabled(self, host):
        assert "crb" not in enabled(host)
        self.converges_once(host)
        assert {"appstream", "baseos", "crb", "epel", "extras"} <= enabled(host)

    def test_a_mirror_takes_their_place(self, host):
        mirror = host.run("cat /etc/dnf/vars/lab").strip()
        self.converges_once(host, base_dnf_mirror=mirror)
        assert host.run("cat /etc/yum.repos.d/rocky.repo").startswith("# Replaced by ")
        assert f"{mirror}/BaseOS/" in host.run("dnf -q repoinfo baseos")
        host.run("dnf -q makecache")

    def test_what_module_metadata_hides_is_there_where_it_is_set_aside(self, host):
        """What the role writes for EL 10, where no stream is enabled."""
        run = host.stack("base,repository")
        assert run.status == 0, run.output[-4000:]
        query = "dnf -q repoquery --repo allreduce-cuda --show-duplicates nvidia-driver-cuda"
        everything = set(host.run(f"{query} --disable-modular-filtering").split())
        assert set(host.run(query).split()) < everything
        assert set(host.run(f"{query} --setopt=allreduce-cuda.module_hotfixes=1").split()) == everything


class TestCentos8(Sources):
    """Its own servers are gone."""

    distribution = "centos8"

    def test_without_a_mirror_it_says_where_the_packages_are(self, host):
        message = stopped(
            host.stack("base", base_dnf_mirror=""),
            "appstream, baseos, extras of",
            "mirrorlist.centos.org",
            "no longer exists",
        )
        assert "set base_dnf_mirror to https://vault.centos.org/8.5.2111" in message
        assert host.run("dnf -q makecache && echo works", check=False) == ""

    def test_the_vault_takes_their_place(self, host):
        self.converges_once(host)
        host.run("dnf -q makecache")
