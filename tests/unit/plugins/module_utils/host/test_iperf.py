# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real iperf3 between network namespaces; its reports, as recorded."""

import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import iperf
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.support import namespaces

A, B = "10.9.0.1", "10.9.0.2"


@pytest.fixture
def net():
    with namespaces.network("ping", "iperf3", "timeout") as made:
        made.wire("a", f"eth0={A}", "b", f"eth0={B}")
        yield made


def serve(net, tmp_path, **more):
    return net.module("b", "network_bandwidth", tmp_path, role="server", address=B, **more)


def measure(net, tmp_path, **more):
    options = {"role": "client", "address": A, "peer": B, "seconds": 1, **more}
    return net.module("a", "network_bandwidth", tmp_path, **options)["bandwidth"]


def listening(net):
    return net.on("b", "ss", "-Hltn").splitlines()


def test_both_directions_are_measured_and_nothing_is_left(net, tmp_path):
    answer = serve(net, tmp_path)
    assert (answer["changed"], answer["bandwidth"]) == (False, {})
    assert {line.split()[3] for line in listening(net)} == {f"{B}:5201", f"{B}:5202"}
    found = measure(net, tmp_path)
    for way, port in (("forward", 5201), ("reverse", 5202)):
        assert found[way]["port"] == port
        assert found[way]["bits_per_second"] > 1e6 and 0 < found[way]["latency"] < 1000
    deadline = time.time() + 10
    while listening(net) and time.time() < deadline:
        time.sleep(0.1)
    assert listening(net) == []


def test_a_firewall_in_between_is_a_clear_answer_and_no_hang(net, tmp_path):
    serve(net, tmp_path, linger=30)
    net.on("b", "ip", "route", "add", "blackhole", f"{A}/32")  # answers to the client are dropped without a word
    started = time.time()
    found = measure(net, tmp_path)
    assert [found[way]["code"] for way in ("forward", "reverse")] == ["no_connection"] * 2
    assert (found["forward"]["port"], found["reverse"]["port"]) == (5201, 5202)
    assert time.time() - started < 30


def test_nobody_listens(net, tmp_path):
    assert measure(net, tmp_path)["forward"]["code"] == "no_connection"


def test_a_server_that_nobody_uses_ends(net, tmp_path):
    serve(net, tmp_path, linger=1)
    time.sleep(2.5)
    assert listening(net) == []


def test_a_port_that_another_program_has(net, tmp_path):
    serve(net, tmp_path, port=5300, linger=20)
    found = serve(net, tmp_path, port=5299)["bandwidth"]
    assert found == {"reverse": {"code": "port_in_use", "output": "", "port": 5300}}


def test_an_address_that_is_not_the_nodes(net, tmp_path):
    found = net.module("b", "network_bandwidth", tmp_path, role="server", address="10.9.0.77")["bandwidth"]
    assert {one["code"] for one in found.values()} == {"no_server"} and len(found) == 2


def test_check_mode_starts_nothing(net, tmp_path):
    answer = serve(net, tmp_path, _ansible_check_mode=True)
    assert answer["changed"] is False and "bandwidth" not in answer
    assert listening(net) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("iperf3: unrecognized option '--connect-timeout'", "no_report"),
        ("", "no_report"),
        ("[]", "no_report"),
        # iperf 3.12, the server refuses or does not answer
        ('{"start": {"connected": [], "version": "iperf 3.12"}, "intervals": [], "end": {},'
         ' "error": "unable to connect to server: Connection refused"}', "no_connection"),
        # … and where it goes away in the middle
        ('{"start": {"connected": [{"socket": 5}], "connecting_to": {"host": "10.9.0.2", "port": 5201}}, "intervals": [],'
         ' "end": {}, "error": "control socket has closed unexpectedly"}', "interrupted"),
        ('{"start": {"connecting_to": {"host": "10.9.0.2"}}, "end": {"sum_received": {"bits_per_second": 0}}}', "interrupted"),
    ],
)  # fmt: skip
def test_reports_without_a_figure(text, code):
    assert iperf.parse_report(text)["code"] == code


def test_what_arrived_counts_not_what_was_sent():
    end = '{"sum_sent": {"bits_per_second": 2.0}, "sum_received": {"bits_per_second": 1.5}}'
    assert iperf.parse_report(f'{{"start": {{}}, "end": {end}}}') == {"bits_per_second": 1.5}


@pytest.mark.parametrize(("state", "found"), [("0A", True), ("01", False)])
def test_listening_is_read_from_the_kernel(tmp_path, state, found):
    table = tmp_path / "proc" / "net" / "tcp"
    table.parent.mkdir(parents=True)
    table.write_text(f"  sl  local_address rem_address   st\n   0: 0200090A:1451 00000000:0000 {state} 00000000\n")
    assert iperf.listens(FileTree(str(tmp_path)), 5201) is found
    assert iperf.listens(FileTree(str(tmp_path)), 5202) is False
