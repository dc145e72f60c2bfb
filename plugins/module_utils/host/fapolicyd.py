# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fapolicyd of a node, which lets only trusted programs run: its state, and the rules for what the collection installs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

DIRECTORY = "/etc/fapolicyd"
CONFIG, COMPILED, OLD_RULES = (
    DIRECTORY + "/fapolicyd.conf",
    DIRECTORY + "/compiled.rules",
    DIRECTORY + "/fapolicyd.rules",
)
# Between the patterns of files 30, which stay in force, and the first files that deny by kind (40 and above).
PATH = DIRECTORY + "/rules.d/38-allreduce.rules"
PROGRAMS = ("/usr/sbin/fapolicyd", "/usr/bin/fapolicyd")
TREE = "/opt/allreduce/"
# The first rule that fits decides. A MIME type has a line of its own, as a name for several that is not defined stops the daemon.
RULES = r"""# Written by the Ansible collection allreduce.gpu, which removes it with base_fapolicyd_state: absent.
# Interpreters, environments and tools of the collection: only root can write there, and no package manager knows their files.
allow perm=any all : dir=/opt/allreduce/
# Training scripts, copied below a run's directory on every start. Only as text for an interpreter: no program there is executed,
# no library loaded. Python's name differs with the version of the magic file.
allow perm=open all : dir=/var/lib/allreduce/runs/ ftype=text/x-python
allow perm=open all : dir=/var/lib/allreduce/runs/ ftype=text/x-script.python
allow perm=open all : dir=/var/lib/allreduce/runs/ ftype=application/x-bytecode.python
"""


def read_fapolicyd(tree):
    """Return {active, permissive, rules, loaded, others}; None for a node that has no fapolicyd.

    ``rules``: whether our file is absent, different or equal; ``loaded``: whether the rules that were compiled last have ours;
    ``others``: whether rules or trust of another tool name our directory. The last four are None where files cannot be read, which
    are root's on Enterprise Linux.
    """
    config = tree.text(CONFIG)
    if config is None and not any(tree.exists(path) for path in PROGRAMS):
        return None
    command = _command(tree)
    found = {"active": command is not None, "permissive": None, "rules": None, "loaded": None, "others": None}
    if config is not None:
        found.update(permissive=is_permissive(config, command or []), others=_names_tree(tree), **read_rules(tree))
    return found


def read_rules(tree):
    """Return {rules, loaded} of our file and of what was compiled."""
    text = tree.text(PATH)
    state = "absent" if text is None and not tree.exists(PATH) else "equal" if text == RULES.rstrip() else "different"
    compiled = lines(tree.text(COMPILED) or "")
    return {"rules": state, "loaded": all(line in compiled for line in lines(RULES))}


def is_permissive(config, command):
    """Return True if the daemon only writes down what it would deny: by its configuration, or by an option that it was started with."""
    return bool(re.search(r"(?m)^\s*permissive\s*=\s*1\s*$", config)) or "--permissive" in command


def plan(wanted, found):
    """Return the steps from ``found`` (read_rules) to the state ``wanted``: write or remove the file, load the rules."""
    if wanted == "present":
        steps = ["write"] if found["rules"] != "equal" else []
        return steps + (["load"] if steps or not found["loaded"] else [])
    steps = ["remove"] if found["rules"] != "absent" else []
    return steps + (["load"] if steps or found["loaded"] else [])


def denies(found, program):
    """Return True if the daemon keeps all but root from PROGRAM, an absolute path; what it trusts elsewhere is not known."""
    if found is None or not program.startswith(TREE) or not found["active"]:
        return False
    return found["permissive"] is False and found["loaded"] is False and not found["others"]


def reloads(text):
    """Return True if the daemon takes new rules while it runs, by its client's help: the option came with that in release 1.3."""
    return "--reload-rules" in text


def lines(text):
    """Return the rules of a file, without comments, as fagenrules compiles them."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _command(tree):
    """Return the running daemon's arguments; None without one."""
    number = tree.number("/run/fapolicyd.pid")
    if number is None or tree.text("/proc/%d/comm" % number) != "fapolicyd":
        return None
    return (tree.text("/proc/%d/cmdline" % number) or "").split("\0")


def _names_tree(tree):
    ours = lines(RULES)
    trust = ["%s/trust.d/%s" % (DIRECTORY, name) for name in tree.names(DIRECTORY + "/trust.d")]
    found = [
        line for path in [COMPILED, DIRECTORY + "/fapolicyd.trust"] + trust for line in lines(tree.text(path) or "")
    ]
    return any(TREE in line for line in found if line not in ours)
