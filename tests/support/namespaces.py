# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are network namespaces of this machine: real packets, real ping and iperf3, no containers."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

COLLECTIONS = Path(__file__).resolve().parents[2] / ".collections"


# Python 3.6 knows neither capture_output nor text.
QUIET = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "universal_newlines": True}


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], check=False, **QUIET)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


class Network:
    """Namespaces by short names; addresses are 10.9.SUBNET.NUMBER/24."""

    def __init__(self):
        self._mark = f"ar{uuid.uuid4().hex[:6]}"
        self._made = []

    def space(self, name):
        """Return the namespace's real name; made at its first mention."""
        if name not in self._made:
            ip("netns", "add", f"{self._mark}-{name}")
            self._made.append(name)
            ip("-n", self.space(name), "link", "set", "lo", "up")
        return f"{self._mark}-{name}"

    def wire(self, one, first, other, second, mtu=1500):
        """Connect two namespaces; first, second: interface and address of each end, such as eth0=10.9.0.1."""
        ends = [(one, *first.split("=")), (other, *second.split("="))]
        (near, near_interface), (far, far_interface) = ((name, interface) for name, interface, _address in ends)
        ip("link", "add", near_interface, "netns", self.space(near), "type", "veth", "peer", "name", far_interface,
           "netns", self.space(far))  # fmt: skip
        for name, interface, address in ends:
            if address:
                ip("-n", self.space(name), "address", "add", f"{address}/24", "dev", interface)
            ip("-n", self.space(name), "link", "set", interface, "mtu", str(mtu), "up")

    def on(self, name, *command):
        done = subprocess.run(["ip", "netns", "exec", self.space(name), *command], check=False, **QUIET)
        assert done.returncode == 0, f"{command} on {name}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, name, module, place, **options):
        """Run a module of the collection in a namespace."""
        arguments = place / f"{uuid.uuid4().hex}.json"
        arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": options}), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(COLLECTIONS), *sys.path]))}
        program = f"ansible_collections.allreduce.gpu.plugins.modules.{module}"
        command = ["ip", "netns", "exec", self.space(name), sys.executable, "-m", program, str(arguments)]
        return subprocess.Popen(command, env=environment, **QUIET)

    def module(self, name, module, place, **options):
        output, error = self.start(name, module, place, **options).communicate(timeout=120)
        assert output, error
        return json.loads(output)

    def remove(self):
        for name in self._made:
            subprocess.run(["ip", "netns", "del", self.space(name)], check=False, **QUIET)


@contextmanager
def network(*programs):
    """Lend a network; skip the test where this machine cannot make one, or lacks one of the programs."""
    missing = [name for name in ("ip", *programs) if not shutil.which(name)]
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("this interpreter has no Ansible to run modules with")
    made = Network()
    try:
        made.space("probe")
        made.wire("probe", "p0=", "probe", "p1=")
    except AssertionError as error:
        made.remove()
        pytest.skip(f"no network namespaces with veth pairs here: {error}")
    try:
        yield made
    finally:
        made.remove()
