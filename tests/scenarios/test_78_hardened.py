# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts hardened by a published baseline, before the main job and after it: CIS level 1 for servers, from ComplianceAsCode.

OpenSCAP applies the baseline and judges it. The hosts are replicas: Debian that answers like Ubuntu, where the content applies.
"""

import xml.etree.ElementTree as ET

import pytest
import yaml
from cluster import CHECKOUT, KEEP, Cluster

pytestmark = pytest.mark.lab

RULES = "xccdf_org.ssgproject.content_rule_"
# Rules that the host itself could not carry, with or without the main job.
LEFT_OUT = {
    "accounts_passwords_pam_tally2": "Ubuntu's PAM has no pam_tally2 since 22.04, the replicas' neither: nobody could log in",
    "aide_build_database": "the index of all files takes minutes",
    "package_ntp_installed": "the baseline asks for chrony as well, and one takes the other's place",
    "service_iptables_enabled": "a second owner beside ufw",
}
INSTALL = (
    "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
    " openscap-scanner ssg-debderived libpam-pwquality ufw >/dev/null"
)
# Most rules are for machines and not for containers, which a file in /run tells them apart by.
EVALUATE = """
cat > /root/oscap.sh <<'END'
mkdir -p /root/run; mount --rbind /run /root/run; mount -t tmpfs tmpfs /run
for entry in /root/run/*; do ln -s "$entry" /run/; done
oscap xccdf eval {options} --profile xccdf_org.ssgproject.content_profile_cis_level1_server --results /root/results.xml \
  /usr/share/xml/scap/ssg/content/ssg-{distribution}-ds.xml
END
unshare --mount sh /root/oscap.sh > /root/oscap.log 2>&1; echo $?
"""
# Default-deny for what comes in, which the baseline's own rules for ufw leave to the site.
DENY = "ufw allow 22/tcp >/dev/null && ufw --force enable >/dev/null && ufw status verbose"


class Hardened:
    """Two hosts of a distribution, the request of its Molecule scenario, and a judge of the baseline."""

    def __init__(self, distribution):
        self.distribution = distribution
        scenario = yaml.safe_load((CHECKOUT / "molecule" / distribution / "molecule.yml").read_text(encoding="utf-8"))
        options = ("--distribution", distribution, "--machine", scenario["driver"]["machine"])
        self.cluster = Cluster("hardened", 2, *options)
        values = scenario["provisioner"]["inventory"]["group_vars"]["gpu_nodes"]
        place = self.cluster.inventory / "group_vars" / "gpu_nodes.yml"
        kept = yaml.safe_load(place.read_text(encoding="utf-8"))
        place.write_text(yaml.safe_dump({**kept, **values, "firewall_state": "present"}), encoding="utf-8")
        for host in self.cluster.hosts:
            self.cluster.on(host, INSTALL)

    def judge(self, host, *options):
        """Names of the rules that the host passes, and of those that it fails."""
        options = " ".join([*(f"--skip-rule {RULES}{name}" for name in LEFT_OUT), *options])
        command = EVALUATE.format(options=options, distribution=self.distribution)
        assert self.cluster.on(host, command).strip() in ("0", "2"), self.cluster.on(host, "tail -20 /root/oscap.log")
        space = {"x": "http://checklists.nist.gov/xccdf/1.2"}
        results = ET.fromstring(self.cluster.on(host, "cat /root/results.xml")).findall(".//x:rule-result", space)
        found = {one.get("idref").removeprefix(RULES): one.findtext("x:result", None, space) for one in results}
        return (
            {name for name, result in found.items() if result == "pass"},
            {name for name, result in found.items() if result == "fail"},
        )

    def harden(self):
        """Apply the baseline; the rules that each host passes then."""
        for host in self.cluster.hosts:
            self.judge(host, "--remediate")
            assert "deny (incoming)" in self.cluster.on(host, DENY)
        return {host: self.judge(host)[0] for host in self.cluster.hosts}

    def succeed(self, playbook, *options):
        run = self.cluster.play(playbook, *options)
        assert run.status == 0, run.output[-6000:]
        return run


@pytest.fixture(scope="module", params=["ubuntu2204"])
def hardened(request):
    made = Hardened(request.param)
    yield made
    if not KEEP:
        made.cluster.down()


def test_the_main_job_on_hardened_hosts_takes_nothing_of_the_baseline_back(hardened):
    hosts = hardened.cluster.hosts
    bare = {host: hardened.judge(host)[0] for host in hosts}
    before = hardened.harden()
    for host in hosts:
        # The baseline was really applied: what passes now failed before.
        assert len(before[host] - bare[host]) > 30, sorted(before[host] - bare[host])
        assert {"sshd_disable_root_login", "sudo_add_use_pty", "accounts_umask_etc_login_defs"} <= before[host]
    hardened.succeed("playbooks/site.yml")
    after = {host: hardened.judge(host) for host in hosts}
    assert {host: sorted(before[host] & after[host][1]) for host in hosts} == dict.fromkeys(hosts, [])
    hardened.succeed("playbooks/verify.yml")
    hardened.succeed("playbooks/train.yml")


def test_hardening_after_the_main_job_changes_nothing_of_it(hardened):
    hosts = hardened.cluster.hosts
    hardened.harden()
    run = hardened.succeed("playbooks/site.yml")
    assert {host: run.recap[host]["changed"] for host in hosts} == dict.fromkeys(hosts, 0), run.output[-6000:]
    hardened.succeed("playbooks/verify.yml")
    hardened.succeed("playbooks/train.yml")
