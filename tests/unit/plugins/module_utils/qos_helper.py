# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network namespace with a veth pair, whose tc and nft are the real ones of this machine; and what tc of other releases prints."""

import os
import re
import shutil
import subprocess
import uuid

import pytest

# As Python 3.6 takes it.
TEXT = {
    "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "universal_newlines": True,
    "env": {**os.environ, "LC_ALL": "C", "LANG": "C"},
}  # fmt: skip
INTERFACE = {
    "name": "train0", "ifb": "", "rate": 200_000_000, "leaf": "", "filters": [],
    "classes": [
        {"minor": "10", "rate": 160_000_000, "ceil": 200_000_000, "prio": 0},
        {"minor": "20", "rate": 40_000_000, "ceil": 200_000_000, "prio": 1},
    ],
}  # fmt: skip
RULES = """\
add table inet allreduce_qos
delete table inet allreduce_qos
table inet allreduce_qos {
  chain postrouting {
    type filter hook postrouting priority -150; policy accept;
    oifname != { "train0" } return comment "allreduce.gpu 0123456789abcdef"
    meta l4proto tcp th dport 5201 meta priority set a11e:10
  }
}
"""
DIGEST = "0123456789abcdef"
# iproute2 6.1 prints this for ``tc -j class show``, 6.2 and later the second (tc/tc_class.c, tc/q_htb.c of v6.2).
CLASSES_TEXT = """\
class htb a11e:10 parent a11e:1 leaf a110: prio 0 rate 160Mbit ceil 200Mbit burst 20000b cburst 25000b
class htb a11e:1 root rate 200Mbit ceil 200Mbit burst 25000b cburst 25000b
class htb a11e:20 parent a11e:1 leaf a120: prio 1 rate 40Mbit ceil 200Mbit burst 16000b cburst 25000b
"""
CLASSES_JSON = """\
[{"class":"htb","handle":"a11e:10","parent":"a11e:1","leaf":"0xa110","prio":0,"rate":20000000,"ceil":25000000,"burst":20000,"cburst":25000},
{"class":"htb","handle":"a11e:1","root":true,"rate":25000000,"ceil":25000000,"burst":25000,"cburst":25000},
{"class":"htb","handle":"a11e:20","parent":"a11e:1","leaf":"0xa120","prio":1,"rate":5000000,"ceil":25000000,"burst":16000,"cburst":25000}]
"""


def lacking(*programs):
    """Why no namespace can be made with these programs; None where one can."""
    missing = [one for one in ("ip", *programs) if not shutil.which(one)]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(["unshare", "--net", "true"], check=False, **TEXT)
    return "makes network namespaces, which takes root" if tried.returncode else None


class Space:
    """The namespace: train0 with 10.99.0.1 in it, and peer0 with 10.99.0.2 in a second one."""

    def __init__(self):
        self.names = [f"qos{uuid.uuid4().hex[:8]}" for _one in range(2)]
        here, there = self.names
        for name in self.names:
            subprocess.run(["ip", "netns", "add", name], check=True)
            self.on(name, "ip", "link", "set", "lo", "up")
        self.on(
            here,
            "ip",
            "link",
            "add",
            "train0",
            "numtxqueues",
            "2",
            "type",
            "veth",
            "peer",
            "name",
            "peer0",
            "netns",
            there,
        )
        for name, link, address in ((here, "train0", "10.99.0.1/24"), (there, "peer0", "10.99.0.2/24")):
            self.on(name, "ip", "address", "add", address, "dev", link)
            self.on(name, "ip", "link", "set", link, "up")

    @staticmethod
    def on(name, *arguments):
        """What a program in a namespace prints."""
        command = ["ip", "netns", "exec", name, *arguments]
        return subprocess.run(command, check=True, **TEXT).stdout

    def run(self, arguments, data=None):
        """(exit code, output), as the module's own runner."""
        command = ["ip", "netns", "exec", self.names[0], *arguments]
        done = subprocess.run(command, input=data or "", check=False, **TEXT)
        return done.returncode, done.stdout + done.stderr if done.returncode else done.stdout

    def output(self, arguments):
        status, output = self.run(arguments)
        return output if status == 0 else None

    def state(self):
        """All that a removal has to put back, as people see it."""
        shown = self.on(self.names[0], "tc", "qdisc", "show") + self.on(self.names[0], "ip", "-o", "link", "show")
        shown = re.sub(r"refcnt \d+", "", shown)  # counts who looks at it at the moment, too
        filters = self.on(self.names[0], "tc", "filter", "show", "dev", "train0", "ingress")
        return shown + filters + (self.output(["nft", "list", "ruleset"]) or "")

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def spaces():
    """What a fixture yields from: a space for one test."""
    reason = lacking("tc")
    if reason:
        pytest.skip(reason)
    made = Space()
    yield made
    made.close()
