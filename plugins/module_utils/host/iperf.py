# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure one pair of nodes with iperf3: servers that answer one measurement each and then are gone, and their client."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import signal
import subprocess
import time

from .paths import parse_rtt
from .probes import as_user, run

# A firewall that drops packets must not delay longer than this for a connection (milliseconds).
CONNECT = "5000"
LISTEN = "0A"  # of net/tcp_states.h
START = 20  # seconds until a server listens: a program takes some to start on a node under load


def serve(tree, address, ports, linger, user=None):
    """Start a server on each port for one measurement; return {port: {code, output} where it does not listen}.

    Each ends with its measurement, or after LINGER seconds without one.
    """
    problems = {}
    for port in ports:
        if listens(tree, port):
            problems[port] = {"code": "port_in_use", "output": ""}
            continue
        command = ["timeout", str(linger), "iperf3", "-s", "-1", "-B", address, "-p", str(port)]
        process = start(as_user(command, user))
        if not wait_for(tree, port, process):
            problems[port] = {"code": "no_server", "output": why_silent(process)}
            stop(process)
    return problems


def start(command):
    """Start a program that outlives this one."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd="/", start_new_session=True, **quiet)


def stop(process):
    """End a program that ``start`` began, with all that it began itself."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    process.wait()


def wait_for(tree, port, process):
    """Return True if a process comes to listen on the port in time; one that has ended is not waited for."""
    end = time.monotonic() + START
    while time.monotonic() < end and process.poll() is None:
        if listens(tree, port):
            return True
        time.sleep(0.05)
    return False


def why_silent(process):
    """Return the reason why a process does not listen, in words."""
    code = process.poll()
    return "it did not listen within %d s" % START if code is None else "it ended with %s" % code


def listens(tree, port):
    """Return True if anything listens on the port; asked by a connection, a server for one would be used up."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (tree.text(table) or "").splitlines()[1:]:
            columns = line.split()
            if columns[1].endswith(":%04X" % port) and columns[3] == LISTEN:
                return True
    return False


def measure(address, peer, ports, seconds, user=None):
    """Return {``forward``, ``reverse``}: each {port, latency, bits_per_second} or {port, latency, code, output}.

    latency: milliseconds of the shortest of ten round trips, before there is load; None without an answer or ping.
    """
    code, lines = run(["ping", "-n", "-q", "-c", "10", "-i", "0.05", "-W", "1", "-I", address, peer], timeout=30)
    latency = parse_rtt(lines) if code == 0 else None
    found = {}
    for way, port, more in (("forward", ports[0], []), ("reverse", ports[1], ["-R"])):
        command = ["iperf3", "-J", "-c", peer, "-B", address, "-p", str(port), "-t", str(seconds)]
        code, lines = run(command + ["--connect-timeout", CONNECT] + more, timeout=seconds + 20, user=user)
        found[way] = dict(parse_report("\n".join(lines)), port=port, latency=latency)
    return found


def parse_report(text):
    """Return {bits_per_second} of iperf3's JSON, or {code, output}: what it says has no effect, only how far it came.

    The codes are ``no_connection``, ``interrupted`` (after that) and ``no_report`` (no JSON).
    """
    try:
        report = json.loads(text)
        received = report.get("end", {}).get("sum_received", {}).get("bits_per_second")
        failed = report.get("error")
    except (ValueError, AttributeError):
        return {"code": "no_report", "output": text.strip()[-200:]}
    if received and failed is None:
        return {"bits_per_second": received}
    connected = "connecting_to" in report.get("start", {})
    return {"code": "interrupted" if connected else "no_connection", "output": str(failed or "no data arrived")[:200]}
