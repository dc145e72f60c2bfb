# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on GPUDirect RDMA, for each answer of the libraries and each state of nvidia_peermem."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.rdma import (
    Adapter,
    Answer,
    Cuda,
    GpuDirect,
    Peermem,
    RdmaNode,
    Verbs,
)  # fmt: skip
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.gpudirect import ANSWERS, verdicts, version_of
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.text import describe

EXPORTS = Cuda("ok", None, 12040, {"0000:07:00.0": True})
WITHHOLDS = Cuda("ok", None, 12040, {"0000:07:00.0": False})
REGISTERS, REFUSES, UNOPENED = Answer("supported", 9), Answer("unsupported", 95), Answer("not_opened", 13)
LISTED = Peermem("550.54.15", {"nv_mem": "1.2"}, True)
HELD, LOADED, UNREGISTERED = Peermem("1", {}, True), Peermem("1", {}, None), Peermem("1", {}, False)
NO_PEERMEM = Peermem(None, {}, False)


def judged(answer, cuda=EXPORTS, peermem=NO_PEERMEM, nccl=(), **adapter):
    node = RdmaNode(
        (Adapter("mlx5_0", **adapter),), gpudirect=GpuDirect(Verbs("ok", {"mlx5_0": answer}), cuda, peermem)
    )
    (found,) = verdicts(node, nccl)
    for reason in found.reasons:
        assert describe(reason)
    return found.path, [one.code.removeprefix("gpudirect_") for one in found.reasons]


@pytest.mark.parametrize(
    ("answer", "cuda", "peermem", "path", "reasons"),
    [
        (REGISTERS, EXPORTS, NO_PEERMEM, "dma-buf", []),
        (REGISTERS, EXPORTS, LISTED, "dma-buf", []),
        (REFUSES, EXPORTS, LISTED, "peermem", ["unsupported"]),
        (REFUSES, EXPORTS, HELD, "peermem", ["unsupported"]),
        (REFUSES, EXPORTS, LOADED, "unknown", ["unsupported", "peermem_unshown"]),
        (REFUSES, EXPORTS, UNREGISTERED, "none", ["unsupported", "peermem_unregistered"]),
        (REFUSES, EXPORTS, NO_PEERMEM, "none", ["unsupported", "peermem_absent"]),
        (REFUSES, EXPORTS, Peermem(None, {}, False, False), "none", ["unsupported", "peermem_unoffered"]),
        (REGISTERS, WITHHOLDS, LISTED, "peermem", ["not_exported"]),
        (REGISTERS, WITHHOLDS, NO_PEERMEM, "none", ["not_exported", "peermem_absent"]),
        (REGISTERS, Cuda("ok", None, 11040, {"a": True}), NO_PEERMEM, "none", ["cuda_old", "peermem_absent"]),
        (REGISTERS, Cuda("no_library"), LISTED, "unknown", ["cuda_no_library"]),
        (REGISTERS, Cuda("refused", 803), LISTED, "unknown", ["cuda_refused"]),
        (REGISTERS, Cuda("crashed"), LISTED, "unknown", ["cuda_crashed"]),
        (REGISTERS, Cuda("timeout"), LISTED, "unknown", ["cuda_timeout"]),
        (UNOPENED, EXPORTS, LISTED, "unknown", ["not_opened"]),
        # One half that cannot is enough: what the other half would say does not matter.
        (UNOPENED, WITHHOLDS, LISTED, "peermem", ["not_opened", "not_exported"]),
        (REFUSES, Cuda("not_asked"), NO_PEERMEM, "none", ["unsupported", "cuda_not_asked", "peermem_absent"]),
        (Answer("no_domain", 12), EXPORTS, NO_PEERMEM, "unknown", ["no_domain"]),
        (Answer("crashed"), EXPORTS, NO_PEERMEM, "unknown", ["crashed"]),
        (Answer("timeout"), EXPORTS, NO_PEERMEM, "unknown", ["timeout"]),
        (Answer("not_asked"), Cuda(), NO_PEERMEM, "unknown", ["not_asked", "cuda_not_asked"]),
        (Answer("no_symbol"), EXPORTS, NO_PEERMEM, "none", ["no_symbol", "peermem_absent"]),
        (Answer("no_library"), EXPORTS, NO_PEERMEM, "none", ["no_library", "peermem_absent"]),
        (Answer("no_devices"), EXPORTS, NO_PEERMEM, "none", ["no_devices", "peermem_absent"]),
        (Answer("not_listed"), EXPORTS, NO_PEERMEM, "none", ["not_listed", "peermem_absent"]),
    ],
)  # fmt: skip
def test_the_verdict(answer, cuda, peermem, path, reasons):
    assert judged(answer, cuda, peermem) == (path, reasons)


@pytest.mark.parametrize(
    ("answer", "cuda", "p2p", "path", "reasons"),
    [
        (REGISTERS, EXPORTS, "", "dma-buf", []),
        (REGISTERS, EXPORTS, None, "dma-buf", []),
        # Its own driver asks that of the GPUs, and libfabric is content with it.
        (REGISTERS, WITHHOLDS, "NVIDIA", "driver", ["not_exported"]),
        (REFUSES, EXPORTS, "NVIDIA peermem", "driver", ["unsupported"]),
        (UNOPENED, EXPORTS, "NVIDIA", "unknown", ["not_opened"]),
        (REGISTERS, WITHHOLDS, "", "none", ["not_exported", "p2p_none"]),
        (REGISTERS, WITHHOLDS, "NEURON", "none", ["not_exported", "p2p_none"]),
        (REGISTERS, WITHHOLDS, None, "none", ["not_exported", "p2p_absent"]),
    ],
)
@pytest.mark.parametrize("peermem", [LISTED, LOADED, NO_PEERMEM])
def test_the_verdict_on_efa(answer, cuda, p2p, path, reasons, peermem):
    """nvidia_peermem is nothing to it."""
    assert judged(answer, cuda, peermem, driver="efa", p2p=p2p) == (path, reasons)


@pytest.mark.parametrize(
    ("nccl", "peermem", "path"),
    [
        (["2.22.3"], HELD, "none"),
        (["2.21.5+cuda12.4", "2.27.3"], HELD, "none"),  # the oldest environment counts
        (["2.23.4"], HELD, "peermem"),
        (["2.22.3"], LISTED, "peermem"),
        ([], HELD, "peermem"),
        (["", None], HELD, "peermem"),
    ],
)
def test_old_releases_of_nccl_do_not_see_the_module(nccl, peermem, path):
    found, reasons = judged(REFUSES, EXPORTS, peermem, nccl)
    assert found == path
    assert ("peermem_unseen" in reasons) == (path == "none")


def test_each_adapter_and_each_kind_of_gpu():
    gpus = {"0000:07:00.0": True, "0000:0f:00.0": False, "0000:47:00.0": True}
    verbs = Verbs("ok", {"mlx5_0": REGISTERS, "mlx5_1": REFUSES})
    node = RdmaNode(
        (Adapter("mlx5_0"), Adapter("mlx5_1")), gpudirect=GpuDirect(verbs, Cuda("ok", None, 12040, gpus), LISTED)
    )
    assert [(one.adapter, one.gpus, one.path) for one in verdicts(node)] == [
        ("mlx5_0", ("0000:07:00.0", "0000:47:00.0"), "dma-buf"),
        ("mlx5_0", ("0000:0f:00.0",), "peermem"),
        ("mlx5_1", ("0000:07:00.0", "0000:47:00.0"), "peermem"),
        ("mlx5_1", ("0000:0f:00.0",), "peermem"),
    ]


def test_no_adapter_and_no_measurement():
    assert verdicts(RdmaNode()) == []
    (found,) = verdicts(RdmaNode((Adapter("mlx5_0"),)))
    assert (found.path, found.gpus) == ("unknown", ())


def test_every_answer_has_a_sentence():
    """An answer that is not success says why, in words."""
    for code in set(ANSWERS) - {"supported"}:
        assert judged(Answer(code))[1][0] == code


def test_versions():
    assert version_of("2.21.5+cuda12.4") == (2, 21, 5) and version_of("2.9.9") < version_of("2.22")
