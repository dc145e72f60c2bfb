# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the rails of one pair of nodes with perftest: active ports of adapters that have the same name on both nodes.

A rail has three ports, one for each measurement: ib_write_bw, ib_write_bw --reversed (the server sends), ib_write_lat. What both
ends must be told alike is marked SYMMETRIC in linux-rdma/perftest, perftest_parameters.c; the tables are those of
perftest_parameters.h (RESULT_FMT_G, RESULT_FMT_LAT). Releases of distributions have no JSON, or one without quotes
(linux-rdma/perftest#216), so the tables are read.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import math
import os
import pwd
import shutil

from . import iperf, rdma
from .probes import run

PORTS = 3
# Columns of the two tables. Gbit/s of 10^9 bits with --report_gbits; the latency is one way, in microseconds, of 2 bytes.
AVERAGE, TYPICAL = 3, 4
# Connecting, and warming up for a quarter of the time before it and after it.
REST = 10


def rails(tree):
    """Return {name: (adapter, number of its port)} of the active ports. tree: of /sys.

    Left out is what these programs do not connect as they are called: EFA has no reliable connections, and iWARP none without
    the connection manager.
    """
    found = {}
    for adapter in rdma.read_adapters(tree):
        if adapter["node_type"] not in ("CA", None):
            continue
        ports = [one["port"] for one in adapter["ports"] if one["state"] == "ACTIVE"]
        for port in ports:
            found[adapter["name"] if len(ports) == 1 else "%s:%d" % (adapter["name"], port)] = (adapter["name"], port)
    return found


def serve(tree, sys_tree, first, seconds, linger, user=None):
    """Start the servers of each rail; return {rail: {port}}, with {code, output} where they do not listen.

    first: port of the first rail. They wait for the rails before them as well, so linger is prolonged by their time.
    """
    found = {}
    for number, (name, rail) in enumerate(sorted(rails(sys_tree).items())):
        port = first + PORTS * number
        wait = linger + (number + 1) * (2 * seconds + PORTS * REST)
        found[name] = dict(_serve(tree, commands(rail, port, seconds), port, wait, user), port=port)
    return found


def _serve(tree, programs, first, linger, user):
    if not shutil.which(programs[0][0]):
        return {"code": "no_program", "output": ""}
    started, problem = [], {}
    for port, command in enumerate(programs, first):
        if iperf.listens(tree, port):
            problem = {"code": "port_in_use", "output": ""}
            break
        started.append(iperf.start(["timeout", str(linger)] + as_user(command, user)))
        if not iperf.wait_for(tree, port, started[-1]):
            problem = {"code": "no_server", "output": iperf.why_silent(started[-1])}
            break
    if problem:
        for process in started:
            iperf.stop(process)
    return problem


def commands(rail, first, seconds):
    """Return the commands for both ends of a rail; the client appends the server's address."""
    adapter, port = rail
    bandwidth = ["ib_write_bw", "-F", "--report_gbits", "-D", str(seconds)]
    kinds = [bandwidth, bandwidth + ["--reversed"], ["ib_write_lat", "-F"]]
    return [kind + ["-d", adapter, "-i", str(port), "-p", str(first + number)] for number, kind in enumerate(kinds)]


def as_user(command, user):
    """Return the command with the user's rights, but with memory that may be locked: adapters read it directly."""
    if not user or os.geteuid() != 0:
        return command
    account = pwd.getpwnam(user)
    ids = ["--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
    return ["prlimit", "--memlock=unlimited:unlimited", "setpriv"] + ids + command


def measure(sys_tree, peer, served, seconds, user=None):
    """Return {rail: {forward, reverse}} like ``iperf.measure``, of all rails that this node or the server (SERVED) has."""
    mine = rails(sys_tree)
    found = {}
    for name in sorted(set(mine) | set(served)):
        answer = (
            served.get(name, {"port": 0, "code": "no_rail"}) if name in mine else dict(served[name], code="no_rail")
        )
        if "code" in answer:
            found[name] = {"forward": answer, "reverse": answer}
            continue
        found[name] = _measure(commands(mine[name], answer["port"], seconds), answer["port"], peer, seconds, user)
    return found


def _measure(programs, first, peer, seconds, user):
    answers = []
    for command in programs:
        code, lines = run(as_user(command + [peer], user), timeout=seconds + 2 * REST)
        answers.append((code, lines))
    code, lines = answers.pop()
    latency = column(lines, TYPICAL) if code == 0 else None
    found = {}
    for port, way, (code, lines) in zip((first, first + 1), ("forward", "reverse"), answers):
        average = column(lines, AVERAGE) if code == 0 else None
        found[way] = {"port": port, "latency": None if latency is None else latency / 1000}
        if average:
            found[way]["bits_per_second"] = average * 1e9
        else:
            found[way].update(code="no_report", output=" ".join(lines[-2:]).strip()[-200:])
    return found


def column(lines, number):
    """Return a figure of the last row of the table, the only lines that are nothing but numbers; None without one that is finite."""
    found = None
    for line in lines:
        try:
            found = [float(word) for word in line.split()][number]
        except (IndexError, ValueError):
            pass
    return found if found is not None and math.isfinite(found) else None
