# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts hardened by a published baseline, before the full run and after it: CIS level 1 for servers, from ComplianceAsCode.

OpenSCAP applies the baseline and judges it. The hosts are replicas: Debian that answers like Ubuntu, where the content applies.
Ubuntu 22.04 has ufw in charge of its firewall, Ubuntu 24.04 nftables, as the baseline of each has it.
"""

import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
import yaml
from cluster import CHECKOUT, KEEP, Cluster

pytestmark = pytest.mark.lab

RULES = "xccdf_org.ssgproject.content_rule_"
INSTALL = (
    "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
    " openscap-scanner ssg-debderived libpam-pwquality {packages} >/dev/null"
)
# Default-deny for what comes in, which the baseline's own rules leave to the site; done again it changes nothing.
UFW = "ufw allow 22/tcp >/dev/null && ufw --force enable >/dev/null && ufw status verbose"
NFTABLES = """
set -e
if ! grep -q 'dport 22' /etc/nftables.conf; then
cat > /etc/nftables.conf <<'END'
#!/usr/sbin/nft -f
flush ruleset
table inet filter {
  chain input {
    type filter hook input priority filter; policy drop;
    iif lo accept
    ct state established,related accept
    meta l4proto { icmp, ipv6-icmp } accept
    tcp dport 22 accept
  }
  chain forward { type filter hook forward priority filter; policy accept; }
  chain output { type filter hook output priority filter; policy accept; }
}
END
systemctl enable --quiet nftables; systemctl restart nftables ssh
fi
nft list chain inet filter input
"""


@dataclass(frozen=True)
class Baseline:
    """A profile of a data stream, what the site adds to it, and what shows that it was applied."""

    datastream: str
    profile: str
    packages: str
    deny: str
    denied: str  # what the firewall's owner then says
    left_out: dict  # rules that the host itself could not carry, with or without the full run
    proof: set  # rules that the host passes once the baseline is applied
    choices: dict = field(default_factory=dict)  # values of the content that it leaves to the site


BASELINES = {
    "ubuntu2204": Baseline(
        datastream="ssg-ubuntu2204-ds.xml",
        profile="xccdf_org.ssgproject.content_profile_cis_level1_server",
        packages="ufw",
        deny=UFW,
        denied="deny (incoming)",
        left_out={
            "accounts_passwords_pam_tally2": "Ubuntu's PAM has no pam_tally2 since 22.04, the replicas' neither: nobody could log in",
            "aide_build_database": "the index of all files takes minutes",
            "package_ntp_installed": "the baseline asks for chrony as well, and one takes the other's place",
            "service_iptables_enabled": "a second owner beside ufw",
        },
        proof={"sshd_disable_root_login", "sudo_add_use_pty", "accounts_umask_etc_login_defs"},
    ),
    "ubuntu2404": Baseline(
        datastream="ssg-ubuntu2404-ds.xml",
        profile="xccdf_org.ssgproject.content_profile_cis_level1_server",
        packages="linux-base nftables",  # linux-base tells the content that a kernel is installed
        deny=NFTABLES,
        denied="policy drop",
        left_out={
            "aide_build_database": "the index of all files takes minutes",
            "package_aide_installed": "Debian's package brings a mail server, and takes minutes as well",
        },
        proof={
            "accounts_umask_etc_profile",
            "mount_option_dev_shm_noexec",
            "package_chrony_installed",
            "service_nftables_enabled",
            "sshd_disable_root_login",
            "sudo_custom_logfile",
            "use_pam_wheel_group_for_su",
        },
        # One time service, chrony or systemd-timesyncd: the full run's is chrony.
        choices={"var_timesync_service": "chronyd"},
    ),
}
TAILORING = """<?xml version="1.0" encoding="UTF-8"?>
<t:Tailoring xmlns:t="http://checklists.nist.gov/xccdf/1.2" id="xccdf_allreduce_tailoring_site">
<t:version time="2026-01-01T00:00:00">1</t:version>
<t:Profile id="xccdf_allreduce_profile_site" extends="{profile}"><t:title>The site's choices</t:title>{values}</t:Profile>
</t:Tailoring>
"""
# Most rules are for machines and not for containers, which a file in /run tells them apart by.
EVALUATE = """
cat > /root/oscap.sh <<'END'
mkdir -p /root/run; mount --rbind /run /root/run; mount -t tmpfs tmpfs /run
for entry in /root/run/*; do ln -s "$entry" /run/; done
oscap xccdf eval {options} --results /root/results.xml /usr/share/xml/scap/ssg/content/{datastream}
END
unshare --mount sh /root/oscap.sh > /root/oscap.log 2>&1; echo $?
"""


class Hardened:
    """Two hosts of a distribution, the request of its Molecule scenario, and a judge of the baseline."""

    def __init__(self, distribution):
        self.baseline = BASELINES[distribution]
        scenario = yaml.safe_load((CHECKOUT / "molecule" / distribution / "molecule.yml").read_text(encoding="utf-8"))
        options = ("--distribution", distribution, "--machine", scenario["driver"]["machine"])
        self.cluster = Cluster("hardened", 2, *options)
        values = scenario["provisioner"]["inventory"]["group_vars"]["gpu_nodes"]
        place = self.cluster.inventory / "group_vars" / "gpu_nodes.yml"
        kept = yaml.safe_load(place.read_text(encoding="utf-8"))
        place.write_text(yaml.safe_dump({**kept, **values, "firewall_state": "present"}), encoding="utf-8")
        for host in self.cluster.hosts:
            self.cluster.on(host, INSTALL.format(packages=self.baseline.packages))
            self.cluster.on(host, f"cat > /root/tailoring.xml <<'END'\n{self.tailoring()}END\n")

    def tailoring(self):
        """The baseline's profile with the site's choices, as a profile of its own."""
        value = '<t:set-value idref="xccdf_org.ssgproject.content_value_{}">{}</t:set-value>'
        values = "".join(value.format(*choice) for choice in self.baseline.choices.items())
        return TAILORING.format(profile=self.baseline.profile, values=values)

    def each(self, work):
        """{host: what WORK returns for it}, all hosts at once."""
        hosts = self.cluster.hosts
        with ThreadPoolExecutor(len(hosts)) as pool:
            return dict(zip(hosts, pool.map(work, hosts), strict=True))

    def judge(self, host, *options):
        """Names of the rules that the host passes, and of those that it fails."""
        profile = ["--profile", self.baseline.profile]
        if self.baseline.choices:
            profile = ["--tailoring-file", "/root/tailoring.xml", "--profile", "xccdf_allreduce_profile_site"]
        options = " ".join([*profile, *(f"--skip-rule {RULES}{name}" for name in self.baseline.left_out), *options])
        command = EVALUATE.format(options=options, datastream=self.baseline.datastream)
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
        self.each(lambda host: self.judge(host, "--remediate"))
        for host in self.cluster.hosts:
            assert self.baseline.denied in self.cluster.on(host, self.baseline.deny)
        return {host: found[0] for host, found in self.each(self.judge).items()}

    def succeed(self, playbook, *options):
        run = self.cluster.play(playbook, *options)
        assert run.status == 0, run.output[-6000:]
        return run


@pytest.fixture(scope="module", params=BASELINES)
def hardened(request):
    made = Hardened(request.param)
    yield made
    if not KEEP:
        made.cluster.down()


def test_the_main_job_on_hardened_hosts_takes_nothing_of_the_baseline_back(hardened):
    hosts = hardened.cluster.hosts
    bare = {host: found[0] for host, found in hardened.each(hardened.judge).items()}
    before = hardened.harden()
    for host in hosts:
        # The baseline was really applied: what passes now failed before.
        assert len(before[host] - bare[host]) > 30, sorted(before[host] - bare[host])
        assert hardened.baseline.proof <= before[host], sorted(hardened.baseline.proof - before[host])
    hardened.succeed("playbooks/site.yml")
    after = hardened.each(hardened.judge)
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
