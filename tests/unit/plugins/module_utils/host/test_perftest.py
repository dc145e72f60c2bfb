# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails of recorded servers, measured with a stand-in for perftest, whose programs take a real adapter; and its tables as published."""

import errno
import json
import random
import socket
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import perftest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.support import perftest as stand_in
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import adapter, efa, server

HERE = "127.0.0.1"
RNIC = "/sys/devices/pci0000:20/0000:20:01.0/0000:22:00.0/infiniband/mlx5_1/node_type"
FIGURES = {"mlx5_0": [197.12, 196.5, 1.52], "mlx5_1": [98.3, 12.5, 1.61]}
# linux-rdma/perftest#273, and a row of ib_write_lat in its format.
PUBLISHED = f"""
{stand_in.LINE}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 8          224958464        0.00               0.48   \t\t   7.498617
{stand_in.LINE}
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The stand-in as both programs, in a directory of its own."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("ib_write_bw", "ib_write_lat"):
        program = place / name
        text = f"#!{sys.executable}\n" + Path(stand_in.__file__).read_text(encoding="utf-8")
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=":")
    monkeypatch.setenv("PERFTEST_FIGURES", json.dumps(FIGURES))
    return place


def listener(port):
    found = socket.socket()
    found.bind((HERE, port))
    found.listen(1)
    return found


def is_free(port, seconds=10):
    """Whether nobody listens on the port any more; a process that was ended takes a moment to be gone."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex((HERE, port)) == errno.ECONNREFUSED:
                return True
        time.sleep(0.05)
    return False


@pytest.fixture
def first():
    """The first of thirty ports that are free, below those that the kernel hands out to whoever connects."""
    while True:
        found = random.randrange(10000, 32000)
        if all(is_free(port, seconds=0.1) for port in range(found, found + 30)):
            return found


def recorded(place, *adapters):
    place.mkdir(exist_ok=True)
    tree(place, server(*adapters))
    return FileTree(str(place / "sys"))


@pytest.fixture
def both(tmp_path):
    """A server with two rails."""
    return recorded(tmp_path / "both", adapter(0), adapter(1, "Ethernet"))


def serve(sys_tree, first, **more):
    return perftest.serve(FileTree(), sys_tree, first, more.pop("seconds", 1), more.pop("linger", 10), **more)


def test_each_rail_is_measured_in_both_directions_and_nothing_is_left(programs, first, tmp_path, both):
    served = serve(both, first)
    assert served == {"mlx5_0": {"port": first}, "mlx5_1": {"port": first + 3}}
    assert perftest.measure(both, HERE, served, 1) == {
        "mlx5_0": {
            "forward": {"port": first, "latency": 0.00152, "bits_per_second": 197.12e9},
            "reverse": {"port": first + 1, "latency": 0.00152, "bits_per_second": 196.5e9},
        },
        "mlx5_1": {
            "forward": {"port": first + 3, "latency": 0.00161, "bits_per_second": 98.3e9},
            "reverse": {"port": first + 4, "latency": 0.00161, "bits_per_second": 12.5e9},
        },
    }
    assert all(is_free(port) for port in range(first, first + 6))


def test_a_node_without_an_adapter_starts_nothing(programs, first, tmp_path):
    none = recorded(tmp_path)
    assert serve(none, first) == {} == perftest.measure(none, HERE, {}, 1)


@pytest.mark.parametrize("other", [efa(1), {**adapter(1, "Ethernet"), RNIC: "4: RNIC\n"}])
def test_adapters_that_perftest_connects_otherwise_are_no_rails(tmp_path, other):
    """EFA has no reliable connections, and iWARP none without the connection manager."""
    assert perftest.rails(recorded(tmp_path / "mixed", adapter(0), other)) == {"mlx5_0": ("mlx5_0", 1)}


def test_a_port_without_a_cable_is_no_rail(programs, first, tmp_path, both):
    down = recorded(tmp_path / "down", adapter(0), adapter(1, state="1: DOWN", physical="3: Disabled"))
    found = perftest.measure(down, HERE, serve(both, first), 1)
    assert found["mlx5_0"]["forward"]["bits_per_second"] == 197.12e9
    assert {way["code"] for way in found["mlx5_1"].values()} == {"no_rail"}
    found = perftest.measure(both, HERE, serve(down, first + 20), 1)
    assert {name: ways["reverse"].get("code") for name, ways in found.items()} == {"mlx5_0": None, "mlx5_1": "no_rail"}


def test_perftest_is_not_there(first, tmp_path, monkeypatch, both):
    monkeypatch.setenv("PATH", str(tmp_path))
    served = serve(both, first)
    assert {one["code"] for one in served.values()} == {"no_program"} and len(served) == 2
    found = perftest.measure(both, HERE, served, 1)
    assert {way["code"] for ways in found.values() for way in ways.values()} == {"no_program"}
    found = perftest.measure(both, HERE, {"mlx5_0": {"port": first}, "mlx5_1": {"port": first}}, 1)
    for ways in found.values():
        for way in ways.values():
            assert way["code"] == "no_report"
            assert way["output"].startswith("ib_write_bw does not start: No such file or directory")


def test_a_port_that_another_program_has(programs, first, tmp_path, both):
    with listener(first + 4):
        served = serve(both, first)
    assert served["mlx5_0"] == {"port": first}
    assert served["mlx5_1"] == {"port": first + 3, "code": "port_in_use", "output": ""}
    assert is_free(first + 3)  # the servers of that rail that had started are gone again


def test_an_adapter_that_verbs_do_not_know(programs, first, tmp_path, monkeypatch, both):
    monkeypatch.setenv("PERFTEST_FIGURES", json.dumps({"mlx5_0": FIGURES["mlx5_0"]}))
    served = serve(both, first)
    assert served["mlx5_1"]["code"] == "no_server"
    assert perftest.measure(both, HERE, served, 1)["mlx5_0"]["forward"]["bits_per_second"] == 197.12e9


def test_a_server_that_does_not_listen_in_time(programs, first, monkeypatch, both):
    monkeypatch.setattr(perftest.iperf, "START", 0)
    served = serve(both, first)
    assert [one["code"] for one in served.values()] == ["no_server"] * 2
    assert {one["output"] for one in served.values()} == {"it did not listen within 0 s"}


def test_both_ends_have_to_be_told_alike(programs, first, tmp_path, both):
    """What the real programs refuse, too."""
    found = perftest.measure(both, HERE, serve(both, first, seconds=2), 1)
    assert found["mlx5_0"]["forward"] == {
        "port": first,
        "latency": 0.00152,
        "code": "no_report",
        "output": "Failed to exchange data between server and clients",
    }


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        (PUBLISHED, perftest.AVERAGE, 0.48),
        (
            f"{stand_in.LATENCY}\n 2       1000          1.48           3.21         1.52  \t       1.53",
            perftest.TYPICAL,
            1.52,
        ),
        ("", perftest.AVERAGE, None),
        (PUBLISHED.partition(" 8 ")[0], perftest.AVERAGE, None),
        (PUBLISHED.replace("0.48", "nothing"), perftest.AVERAGE, None),
        # It divides by the time between two iterations, of which there may be none.
        (PUBLISHED.replace("0.48", "inf"), perftest.AVERAGE, None),
        (PUBLISHED.replace("0.48", "-nan"), perftest.AVERAGE, None),
    ],
)
def test_tables(text, number, expected):
    assert perftest.column(text.splitlines(), number) == expected


def test_a_user_without_rights_may_lock_memory(monkeypatch):
    monkeypatch.setattr(perftest.os, "geteuid", lambda: 0)
    command = perftest.as_user(["ib_write_lat"], "nobody")
    assert command[:3] == ["prlimit", "--memlock=unlimited:unlimited", "setpriv"] and command[-1] == "ib_write_lat"
    assert command[3:8:2] == ["--reuid", "--regid", "--clear-groups"]
    assert perftest.as_user(["ib_write_lat"], None) == ["ib_write_lat"]
