# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether adapters reach the GPUs' memory: simulated libraries asked through ctypes in a child, and recorded trees."""

import errno

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import gpudirect, gpudirect_probe
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import library, peermem, server

NAMES = ["mlx5_0", "mlx5_1"]
GOOD = {"code": "supported", "errno": errno.EBADF}


def verbs(place, answer=errno.EBADF, devices=2, **more):
    path = library(place, "verbs", ANSWER=answer, DEVICES=devices, **more)
    return lambda say: gpudirect_probe.probe_verbs(say, path)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (errno.EBADF, {"code": "supported", "errno": errno.EBADF}),
        (errno.EINVAL, {"code": "supported", "errno": errno.EINVAL}),
        (errno.EOPNOTSUPP, {"code": "unsupported", "errno": errno.EOPNOTSUPP}),
        (errno.EPROTONOSUPPORT, {"code": "unsupported", "errno": errno.EPROTONOSUPPORT}),
    ],
)
def test_what_an_adapter_answers_to_no_buffer(tmp_path, answer, expected):
    found = gpudirect.ask_verbs(NAMES, verbs(tmp_path, answer))
    assert found == {"code": "ok", "adapters": {"mlx5_0": GOOD, "mlx5_1": expected}}


def test_an_adapter_that_cannot_be_opened(tmp_path):
    found = gpudirect.ask_verbs(NAMES, verbs(tmp_path, CLOSED=True))
    assert found["adapters"] == {"mlx5_0": GOOD, "mlx5_1": {"code": "not_opened", "errno": errno.EACCES}}


@pytest.mark.parametrize(("answer", "code"), [(-1, "crashed"), (-2, "timeout")])
def test_a_library_that_crashes_or_hangs_is_an_answer(tmp_path, answer, code):
    """What was found before stands; the module that asks lives on."""
    found = gpudirect.ask_verbs(NAMES, verbs(tmp_path, answer), seconds=2)
    assert found == {"code": code, "adapters": {"mlx5_0": GOOD, "mlx5_1": {"code": code, "errno": None}}}


@pytest.mark.parametrize(("options", "code"), [({"devices": 0}, "no_devices"), ({"WITHOUT_DMABUF": True}, "no_symbol")])
def test_a_library_that_cannot_say(tmp_path, options, code):
    found = gpudirect.ask_verbs(NAMES, verbs(tmp_path, **options))
    assert found == {"code": code, "adapters": dict.fromkeys(NAMES, {"code": code, "errno": None})}


def test_an_adapter_that_the_library_does_not_list(tmp_path):
    found = gpudirect.ask_verbs(NAMES, verbs(tmp_path, devices=1))
    assert found["adapters"] == {"mlx5_0": GOOD, "mlx5_1": {"code": "not_listed", "errno": None}}


@pytest.mark.parametrize(
    ("ask", "probe"),
    [
        (lambda probe: gpudirect.ask_verbs(["mlx5_0"], probe), gpudirect_probe.probe_verbs),
        (gpudirect.ask_cuda, gpudirect_probe.probe_cuda),
    ],
    ids=["verbs", "cuda"],
)
def test_no_library_at_all(ask, probe):
    assert ask(lambda say: probe(say, "libnone-such.so.9"))["code"] == "no_library"


def test_what_the_gpus_export(tmp_path):
    path = library(tmp_path, "cuda", INIT=0)
    found = gpudirect.ask_cuda(lambda say: gpudirect_probe.probe_cuda(say, path))
    gpus = {"0000:07:00.0": True, "0000:0f:00.0": False}
    assert found == {"code": "ok", "status": None, "version": 12040, "gpus": gpus}


@pytest.mark.parametrize(("status", "code", "told"), [(100, "no_gpus", None), (803, "refused", 803)])
def test_cuda_that_does_not_start(tmp_path, status, code, told):
    path = library(tmp_path, "cuda", INIT=status)
    found = gpudirect.ask_cuda(lambda say: gpudirect_probe.probe_cuda(say, path))
    assert (found["code"], found["status"], found["gpus"]) == (code, told, {})


LISTED = peermem()
HOLDS = {"/sys/module/ib_core/holders/nvidia_peermem": ("link", "../../nvidia_peermem")}
OTHER = {"/sys/kernel/mm/memory_peers/other/version": "1.0\n"}


@pytest.mark.parametrize(
    ("files", "module", "clients", "registered"),
    [
        ({}, None, {}, False),
        (LISTED, "550.54.15", {"nv_mem": "1.2", "nv_mem_nc": "1.2"}, True),
        ({**peermem(False), **HOLDS}, "550.54.15", {}, True),
        (peermem(False), "550.54.15", {}, None),
        ({**peermem(False), **OTHER}, "550.54.15", {}, False),
        (OTHER, None, {}, False),
        (
            {"/sys/kernel/mm/memory_peers/nv_mem/version": "1.1\n"},
            None,
            {"nv_mem": "1.1"},
            True,
        ),  # the older nv_peer_mem
        ({"/sys/module/nvidia_peermem/refcnt": "0\n"}, "", {}, None),
    ],
    ids=[
        "none",
        "listed",
        "held by the core",
        "loaded only",
        "core lists others",
        "others only",
        "older module",
        "no version",
    ],
)
def test_peer_memory_counts_when_it_is_registered(tmp_path, files, module, clients, registered):
    found = gpudirect.read_peermem(tree(tmp_path, {**server(), **files}))
    assert found == {"module": module, "clients": clients, "registered": registered, "offered": None}


@pytest.mark.parametrize(
    ("symbol", "offered"),
    [("ib_register_peer_memory_client\t[ib_core]", True), ("ib_register_client\t[ib_core]", False)],
)
def test_whether_the_kernel_takes_clients(tmp_path, symbol, offered):
    files = {"/proc/kallsyms": f"0000000000000000 T _text\n0000000000000000 T {symbol}\n"}
    assert gpudirect.read_peermem(tree(tmp_path, files))["offered"] is offered


def test_nothing_is_started_on_a_recorded_machine(tmp_path):
    found = gpudirect.read_gpudirect(tree(tmp_path, server()), ["mlx5_0"])
    assert found["verbs"] == {"code": "not_asked", "adapters": {"mlx5_0": {"code": "not_asked", "errno": None}}}
    assert found["cuda"] == {"code": "not_asked", "status": None, "version": None, "gpus": {}}
