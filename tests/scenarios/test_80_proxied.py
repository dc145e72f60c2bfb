# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that reach packages through an inspecting proxy only, which asks for a password."""

import json
import os
import urllib.parse

import pytest
from cluster import CHECKOUT, KEEP
from fault_host import FaultHost, stopped

from tests.lab import podman, proxy, services

pytestmark = pytest.mark.lab

SITE = str(CHECKOUT / "playbooks" / "site.yml")
PASSWORDS = (proxy.PASSWORD, urllib.parse.quote(proxy.PASSWORD, safe=""))
DIRECT = {"base_http_proxy": "", "base_https_proxy": ""}


@pytest.fixture(scope="class")
def host(request):
    """The class's host."""
    kind = request.cls
    made = FaultHost(f"proxied-{kind.distribution}", kind.distribution, kind.machine, kind.wanted, *kind.options)
    yield made
    if not KEEP:
        made.down()


def site(host, *options, **variables):
    """site.yml to its end."""
    said = {"gpu_stack_request": host.request, "preflight_ignore": ["lab_*"], **variables}
    return host.play(SITE, "-e", json.dumps(said), *options)


def seen_by_the_proxy():
    """What was asked for inside of TLS, one address a line."""
    return podman.podman("exec", services.NAME, "sh", "-c", "grep -o 'https://[^ ]*' /var/log/squid/access.log || true")


class Proxied:
    """What every distribution must pass, in this order."""

    options = ("--proxied",)

    def test_10_the_host_is_confined(self, host):
        """Neither the mirror nor anything outside is reached directly, and the host still has a default route."""
        connect = "import socket; socket.create_connection(('{}', {}), 3)"
        for address, port in ((services.network.services_address(), services.MIRROR_PORT), ("192.0.2.1", 443)):
            refused = host.run(f'python3 -c "{connect.format(address, port)}" 2>&1 || true')
            assert "unreachable" in refused, refused
        assert "default via" in host.run("ip route")

    def test_20_without_the_proxy(self, host):
        stopped(site(host, **DIRECT), "cannot be reached", "set base_http_proxy")
        host.is_sound()

    def test_21_without_its_password(self, host):
        plain = f"http://{services.network.services_address()}:{proxy.PORT}"
        stopped(site(host, base_http_proxy=plain, base_https_proxy=plain), "user name and password", "base_http_proxy")

    def test_22_without_its_authority(self, host):
        host.run("rm -f /usr/local/share/ca-certificates/* /etc/pki/ca-trust/source/anchors/*")
        host.run("(update-ca-certificates --fresh || update-ca-trust) 2>&1")
        message = stopped(site(host, base_ca_certificates=[]), "certificate", "base_ca_certificates")
        assert proxy.MIRROR in message

    def test_30_everything_goes_through_it(self, host):
        run = site(host, "-vvv", "--diff")
        assert run.status == 0, run.output[-6000:]
        asked = seen_by_the_proxy()
        for part in self.asked:
            assert part in asked, part
        for password in PASSWORDS:
            assert password not in run.output

    def test_31_the_password_is_in_no_log_and_no_fact(self, host):
        searched = "/var/log /var/lib/allreduce /etc/ansible /home /root /tmp /run/log"
        journal = "(journalctl --no-pager -o cat; cat /var/log/auth.log) 2>/dev/null"
        for password in PASSWORDS:
            assert host.run(f"grep -rlF '{password}' {searched} 2>/dev/null", check=False) == ""
            assert host.run(f"{journal} | grep -cF '{password}'", check=False).strip() == "0"
        assert host.run("journalctl --no-pager -o cat | grep -c COMMAND").strip() != "0", "sudo logs nothing here"

    def test_32_the_second_run_changes_nothing(self, host):
        run = site(host)
        assert run.status == 0, run.output[-6000:]
        assert run.recap[host.host]["changed"] == 0, run.output[-6000:]

    def test_40_the_controller_fetches_the_key_through_it(self, host, tmp_path):
        """As a user of a controller behind the same proxy has it: https_proxy, and the authority among those that are trusted."""
        address = f"{proxy.mirror_url(host.name)}/{self.key}"
        message = stopped(site(host, cuda_repository_key=address), address, "https_proxy", "cuda_repository_key")
        assert "Traceback" not in message
        bundle = tmp_path / "bundle.pem"
        bundle.write_text(proxy.authority().read_text(encoding="utf-8"), encoding="utf-8")
        os.environ.update(https_proxy=proxy.url(), SSL_CERT_FILE=str(bundle))
        try:
            run = site(host, "-vv", cuda_repository_key=address)
        finally:
            del os.environ["https_proxy"], os.environ["SSL_CERT_FILE"]
        assert run.status == 0, run.output[-6000:]
        assert self.key in seen_by_the_proxy()
        assert not any(password in run.output for password in PASSWORDS)


class TestDebian(Proxied):
    """apt and uv: the distribution's archive over http, NVIDIA's repository and the wheels over https."""

    distribution, machine = "debian12", "a40-pcie"
    options = ("--proxied", "--mirror")
    wanted = {"driver": "550", "driver_source": "nvidia", "cuda": "12.4", "pytorch": "2.13.0", "pytorch_index": "cpu"}
    key = "compute/cuda/repos/debian12/x86_64/3bf863cc.pub"
    asked = (f"https://{proxy.WHEELS}/cpu/torch-2.13.0", f"https://{proxy.MIRROR}/proxied-debian12/compute/cuda/repos/")


class TestRocky(Proxied):
    """dnf: the distribution over https, too."""

    distribution, machine = "rocky9", "a40-pcie"
    wanted = {"driver": "550", "cuda": "12.4", "pytorch": "none"}
    key = "compute/cuda/repos/rhel9/x86_64/D42D0685.pub"
    asked = tuple(
        f"https://{proxy.MIRROR}/proxied-rocky9/{repository}/repodata/repomd.xml"
        for repository in (
            "el/el9/BaseOS/x86_64/os",
            "el/el9/AppStream/x86_64/os",
            "el/el9/epel/Everything/x86_64",
            "compute/cuda/repos/rhel9/x86_64",
        )
    )
