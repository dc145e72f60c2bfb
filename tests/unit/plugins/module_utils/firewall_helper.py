# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded host whose programs nft, systemctl, ufw and firewall-cmd are played: what they load is remembered."""

import json
import os
import re

from ansible_collections.allreduce.gpu.plugins.module_utils.host import firewalld, nft
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import firewall_live
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.firewall import Machine

UFW_RULES = """\
*filter
:ufw-before-input - [0:0]
# End required lines

-A ufw-before-input -i lo -j ACCEPT
COMMIT
"""
BOOT = "5d2c4c8e-0f0b-4f1e-9f0e-1b2c3d4e5f60\n"
STAT = "1 (systemd) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 %d 1 1\n"
HOST = {
    "/proc/1/stat": STAT % 77,
    "/proc/sys/kernel/random/boot_id": BOOT,
    "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "/proc/sys/net/ipv4/ip_local_reserved_ports": "8080\n",
    "/etc/ufw/before.rules": UFW_RULES,
    "/etc/ufw/before6.rules": UFW_RULES.replace("ufw-", "ufw6-"),
}
RULE = re.compile(r"(insert|delete) rule (\S+ \S+ \S+)")
SERVICE = "LoadState=%s\nActiveState=%s\nUnitFileState=%s\nNeedDaemonReload=no\n"


class Host:
    """closed: chains of others by name, with what they refuse; fails: beginnings of commands that end with 1.

    While it is booting, whoever waits for a service within our unit waits for ever, for its job waits for that of our unit; and
    whoever stops our unit stops itself.
    """

    def __init__(self, tree, owner="nftables", closed=(), fails=()):
        self.tree, self.owner, self.fails = tree, owner, list(fails)
        self.booting = False
        self.text, self.doors, self.ran = None, dict.fromkeys(closed, 0), []
        self.ufw_loaded, self.firewalld_loaded = None, {}
        self.services = {owner: {"enabled": True, "active": True}} if owner != "nftables" else {}
        if owner == "ufw":
            place = tree.path("/etc/ufw/ufw.conf")
            with open(place, "w") as stream:
                stream.write("ENABLED=yes\n")
            self.ufw_loaded = self.read("/etc/ufw/before.rules")

    def machine(self):
        return Machine(self.tree, replace, self.run)

    def read(self, path):
        try:
            with open(self.tree.path(path)) as stream:
                return stream.read()
        except OSError:
            return None

    def run(self, arguments, data=None):
        self.ran.append(" ".join(arguments))
        if any(self.ran[-1].startswith(one) for one in self.fails):
            return 1, "it was told to fail"
        name = arguments[0].replace("-", "_")
        return getattr(self, name, lambda *dummy: (0, ""))(arguments, data)

    def nft(self, arguments, data):
        if arguments == nft.LIST:
            return 0, self.ruleset()
        text = data if arguments[-1] == "-" else self.read(nft.FILE)
        if "table inet allreduce {" in text:
            self.text = text
        elif "delete table inet allreduce" in text:
            self.text = None
        for verb, chain in RULE.findall(text):
            self.doors[chain] += 1 if verb == "insert" else -1
        return 0, ""

    def ruleset(self):
        found = []
        for label, doors in self.doors.items():
            family, table, chain = label.split()
            place = {"family": family, "table": table}
            found.append({"table": {"family": family, "name": table}})
            found.append({"chain": dict(place, name=chain, hook="input", prio=0, policy="drop")})
            rule = dict(place, chain=chain, comment=nft.COMMENT, expr=[{"accept": None}])
            found += [{"rule": dict(rule, handle=number)} for number in range(doors)]
        if self.text:
            ours = {"family": nft.FAMILY, "table": nft.TABLE}
            elements = re.findall(r"elements = \{ (.*) \}", self.text)
            peers = [one for line in elements for one in line.split(", ")]
            comment = f"{nft.COMMENT} {nft.digest_of(self.text)}"
            found += [{"table": {"family": nft.FAMILY, "name": nft.TABLE}}, {"set": dict(ours, name="p", elem=peers)}]
            found.append({"rule": dict(ours, chain="input", handle=9, comment=comment, expr=[])})
        return json.dumps({"nftables": found})

    def systemctl(self, arguments, data):
        if self.booting and arguments[1] != "show":
            verb = next(one for one in arguments[1:] if not one.startswith("-"))
            assert "--no-block" in arguments or verb not in ("start", "stop", "reload", "restart"), "waits for ever"
            assert (verb, arguments[-1]) != ("stop", firewall_live.UNIT), "stops itself"
        arguments = [one for one in arguments if one != "--no-block"]
        if arguments[1] != "show":
            state = self.services.get(arguments[-1])
            if state:
                key = "enabled" if arguments[1] in ("enable", "disable") else "active"
                state[key] = arguments[1] in ("enable", "start")
            return 0, ""
        state = self.services.get(arguments[-1])
        if not state:
            return 0, SERVICE % ("not-found", "inactive", "")
        words = ("active" if state["active"] else "inactive", "enabled" if state["enabled"] else "disabled")
        return 0, SERVICE % (("loaded",) + words)

    def ufw(self, arguments, data):
        self.ufw_loaded = self.read("/etc/ufw/before.rules")
        return 0, ""

    def iptables(self, arguments, data):
        return (0, self.ufw_loaded) if self.ufw_loaded else (1, "")

    ip6tables = iptables

    def firewall_cmd(self, arguments, data):
        if self.owner != "firewalld" or not self.services["firewalld"]["active"]:
            return 252, "not running"
        if arguments[1] == "--reload":
            files = [firewalld.POLICY_FILE] + [firewalld.SET_FILE % version for version in (4, 6)]
            self.firewalld_loaded = {path: self.read(path) for path in files if self.read(path)}
        entries = {}
        for version in (4, 6):
            text = self.firewalld_loaded.get(firewalld.SET_FILE % version) or ""
            entries["--ipset=" + firewalld.SET % version] = "\n".join(re.findall("<entry>(.*)</entry>", text))
        policies = "allow-host-ipv6 allreduce" if firewalld.POLICY_FILE in self.firewalld_loaded else "allow-host-ipv6"
        answers = {"--state": "running", "--version": "1.3.3", "--get-policies": policies}
        return 0, dict(answers, **entries).get(arguments[1], "")

    def live(self):
        """What runs: to be compared before and after."""
        return self.text, dict(self.doors), self.ufw_loaded, self.firewalld_loaded, json.dumps(self.services)


def replace(path, content):
    """Put bytes in place."""
    with open(path + ".new", "wb") as stream:
        stream.write(content)
    os.rename(path + ".new", path)
