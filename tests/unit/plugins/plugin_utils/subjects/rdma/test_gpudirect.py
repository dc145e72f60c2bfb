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
    assert version_of("2.21.5+cuda12.4") == version_of("2.21.5.1") == (2, 21, 5) and version_of("2.21+cuda12") == (
        2,
        21,
    )
    assert version_of("2.9.9") < version_of("2.22")


@pytest.mark.parametrize(
    ("answer", "cuda", "peermem", "nccl", "sentences"),
    [
        (REFUSES, EXPORTS, NO_PEERMEM, (), [
            "mlx5_0 cannot register DMA buffers (error 95): its driver or the kernel is too old.", "nvidia_peermem is not loaded.",
        ]),
        (UNOPENED, EXPORTS, NO_PEERMEM, (), [
            "mlx5_0 could not be opened (error 13), so it is not known whether it registers DMA buffers.",
        ]),
        (REGISTERS, Cuda("ok", None, 11069, {"a": True}), HELD, (), ["The driver offers CUDA 11.6, and DMA buffers need 11.7 or later."]),
        (REGISTERS, Cuda("ok", None, 9020, {"a": True}), HELD, (), ["The driver offers CUDA 9.2, and DMA buffers need 11.7 or later."]),
        (REGISTERS, Cuda("ok", None, 11070, {"a": True}), HELD, (), []),
        (REGISTERS, Cuda("refused", 803), HELD, (), [
            "libcuda does not start (status 803 of cuda.h), so the GPUs could not be asked for DMA buffers.",
        ]),
        (REGISTERS, Cuda("ok"), HELD, (), ["libcuda shows no GPU."]),
        (REGISTERS, Cuda("ok", None, 12040, {"0000:07:00.0": False}), HELD, (), [
            "The GPUs 0000:07:00.0 do not export DMA buffers, which requires the driver's open kernel modules.",
        ]),
        (REFUSES, EXPORTS, HELD, ["2.22.3+cuda12.4", "2.23.0"], [
            "mlx5_0 cannot register DMA buffers (error 95): its driver or the kernel is too old.",
            "NCCL 2.22.3 looks for clients that the RDMA core lists, and nvidia_peermem is not among them; 2.23 and later look for the module.",
        ]),
        (REFUSES, EXPORTS, UNREGISTERED, ["2.23"], [
            "mlx5_0 cannot register DMA buffers (error 95): its driver or the kernel is too old.",
            "nvidia_peermem is loaded, but the RDMA core does not list it: it was built before the RDMA stack.",
        ]),
        # Nothing is loaded that an old NCCL could not see.
        (REFUSES, EXPORTS, NO_PEERMEM, ["2.20.5"], [
            "mlx5_0 cannot register DMA buffers (error 95): its driver or the kernel is too old.", "nvidia_peermem is not loaded.",
        ]),
    ],
)  # fmt: skip
def test_reasons_are_sentences(answer, cuda, peermem, nccl, sentences):
    node = RdmaNode((Adapter("mlx5_0"),), gpudirect=GpuDirect(Verbs("ok", {"mlx5_0": answer}), cuda, peermem))
    (found,) = verdicts(node, nccl)
    assert [describe(one) for one in found.reasons] == sentences


def test_of_several_gpus_that_withhold_all_are_named():
    cuda = Cuda("ok", None, 12040, {"b": False, "a": False})
    (found,) = verdicts(
        RdmaNode((Adapter("mlx5_0"),), gpudirect=GpuDirect(Verbs("ok", {"mlx5_0": REGISTERS}), cuda, LISTED))
    )
    assert found.gpus == ("a", "b") and describe(found.reasons[0]).startswith("The GPUs a, b do not export")


@pytest.mark.parametrize("code", ["no_library", "no_devices", "crashed", "timeout"])
def test_without_a_word_about_the_adapter_the_libraries_own_counts(code):
    node = RdmaNode((Adapter("mlx5_0"),), gpudirect=GpuDirect(Verbs(code), EXPORTS, NO_PEERMEM))
    (found,) = verdicts(node)
    assert found.reasons[0].code == f"gpudirect_{code}" and "mlx5_0" in describe(found.reasons[0])


@pytest.mark.parametrize(
    ("p2p", "sentence"),
    [
        (
            None,
            "The driver of efa_0 is the kernel's, which reaches GPUs by DMA buffers only; EFA's installer has another.",
        ),
        ("", "The driver of efa_0 has not found NVIDIA's."),
    ],
)
def test_reasons_of_an_efa_are_sentences(p2p, sentence):
    node = RdmaNode(
        (Adapter("efa_0", driver="efa", p2p=p2p),),
        gpudirect=GpuDirect(Verbs("ok", {"efa_0": REGISTERS}), WITHHOLDS, LISTED),
    )
    (found,) = verdicts(node)
    assert describe(found.reasons[-1]) == sentence


@pytest.mark.parametrize(
    ("verbs", "cuda"),
    [
        (Verbs("ok"), Cuda("ok", None, 12040, {"a": True})),
        (Verbs("of_tomorrow"), Cuda("of_tomorrow")),
        (Verbs("ok", {"mlx5_0": Answer("of_tomorrow")}), Cuda()),
        (Verbs("not_opened"), Cuda()),
    ],
)
def test_answers_that_nobody_knows_are_none(verbs, cuda):
    node = RdmaNode((Adapter("mlx5_0"),), gpudirect=GpuDirect(verbs, cuda, NO_PEERMEM))
    (found,) = verdicts(node)
    assert found.path == "unknown" and all(describe(one).endswith(".") for one in found.reasons)
