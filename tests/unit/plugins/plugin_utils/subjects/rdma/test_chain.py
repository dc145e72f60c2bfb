# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of NCCL's traffic through a port, whole and broken at each link."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError, parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.rdma import (
    Adapter,
    Bridging,
    Buffers,
    Ets,
    RdmaNode,
    RdmaPort,
    TrafficClass,
)  # fmt: skip
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.chain import chain, chains
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.text import describe
from hypothesis import given
from hypothesis import strategies as st

BUFFERS = Buffers((0, 0, 0, 1, 0, 0, 0, 0), (262016, 131072, 0, 0, 0, 0, 0, 0))
TSA = ("ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets")
ETS = Ets(TSA, (50, 0, 0, 50, 0, 0, 0, 0), (0, 0, 0, 3, 0, 0, 6, 0))
GOOD = Bridging({"26": 3, "48": 6}, 0, (3,), ETS, BUFFERS)
OF = "mlx5_0 at ens0f0np0: "
USES = OF + "NCCL uses class 106, which is DSCP 26"


def port(apps=GOOD.apps, default=0, pfc=(3,), ets=ETS, buffers=BUFFERS):
    return Bridging(apps, default, pfc, ets, buffers)


@pytest.mark.parametrize(
    ("port", "asked", "forced", "code", "sentence"),
    [
        (GOOD, "106", None, "whole", USES + ", priority 3, lossless, traffic class 3 with 50 %."),
        (GOOD, "0x68", None, "whole", OF + "NCCL uses class 104, which is DSCP 26, priority 3, lossless, traffic class 3 with 50 %."),
        (port(ets=None), "106", None, "whole", USES + ", priority 3, lossless, traffic class of its own."),
        (port(pfc=(6,), buffers=Buffers((0, 0, 0, 0, 0, 0, 2, 0), (1, 0, 1, 0, 0, 0, 0, 0))), "192", None, "whole",
         OF + "NCCL uses class 192, which is DSCP 48, priority 6, lossless, traffic class 6 (strict)."),
        (port(buffers=None), "106", None, "whole", USES + ", priority 3, lossless, traffic class 3 with 50 %."),
        (GOOD, None, None, "unmapped",
         OF + "nothing sets NCCL_IB_TC, so NCCL uses class 0, which is DSCP 0, which no application entry maps: the traffic has "
         "priority 0 and is lossy."),
        (GOOD, "106", 96, "unmapped",
         OF + "the driver forces class 96, which is DSCP 24, which no application entry maps: the traffic has priority 0 and is lossy."),
        (GOOD, None, 106, "whole", OF + "the driver forces class 106, which is DSCP 26, priority 3, lossless, traffic class 3 with 50 %."),
        (port(apps={}, default=2), "106", None, "untrusted",
         USES + ", which the port ignores: the traffic has priority 2 and is lossy."),
        (port(apps={}, default=None), "106", None, "untrusted",
         USES + ", which the port ignores: the traffic has priority 0 and is lossy."),
        (port(default=2), "0", None, "unmapped",
         OF + "NCCL uses class 0, which is DSCP 0, which no application entry maps: the traffic has priority 2 and is lossy."),
        (port(default=None), "255", None, "unmapped",
         OF + "NCCL uses class 255, which is DSCP 63, which no application entry maps: the traffic has priority 0 and is lossy."),
        (GOOD, "256", None, "no_class",
         OF + "NCCL_IB_TC is '256', which is not a number from 0 to 255, so it is not known what NCCL uses."),
        (port(pfc=(4, 5)), "106", None, "lossy",
         USES + " and priority 3, which has no flow control (PFC is on for: 4, 5), so it is lossy."),
        (port(buffers=Buffers((0,) * 8, (262016, 0, 0, 0, 0, 0, 0, 0))), "106", None, "shared_buffer",
         USES + " and priority 3 with flow control, but lossy priorities (0, 1, 2, 4, 5, 6, 7) fill its buffer 0."),
        (port(buffers=Buffers(BUFFERS.of, (262016,) + (0,) * 7)), "106", None, "no_buffer",
         USES + " and priority 3 with flow control, but its buffer 1 has no room."),
        (port(ets=Ets(TSA, (100, 0, 0, 0, 0, 0, 0, 0), ETS.classes)), "106", None, "no_share",
         USES + " and priority 3 with flow control, but its traffic class 3 has no bandwidth."),
        (Bridging(), "106", None, "unknown", USES + ", and the port does not show which priority that has."),
        (None, "106", None, "unknown", USES + ", and the port does not show which priority that has."),
        (GOOD, "26*4", None, "no_class",
         OF + "NCCL_IB_TC is '26*4', which is not a number from 0 to 255, so it is not known what NCCL uses."),
        (GOOD, "300", None, "no_class",
         OF + "NCCL_IB_TC is '300', which is not a number from 0 to 255, so it is not known what NCCL uses."),
    ],
)  # fmt: skip
def test_one_sentence_says_where_it_breaks(port, asked, forced, code, sentence):
    found = chain(Adapter("mlx5_0"), "ens0f0np0", port, asked, forced)
    assert (found.way.code, found.is_whole) == ("chain_" + code, code == "whole")
    assert (found.adapter, found.interface) == ("mlx5_0", "ens0f0np0")
    assert describe(found.way) == sentence


def test_every_ethernet_port_has_one():
    ethernet, infiniband = (
        RdmaPort(1, layer, "ACTIVE", netdevs=(name,)) for layer, name in (("Ethernet", "e0"), ("InfiniBand", "ib0"))
    )
    node = RdmaNode(
        (
            Adapter("mlx5_0", ports=(ethernet,)),
            Adapter("mlx5_1", ports=(infiniband,)),
            Adapter("mlx5_2", virtual=True, ports=(ethernet,)),
        ),
        dcb={"e0": GOOD},
        traffic_class=TrafficClass("106"),
    )
    assert [(one.adapter, one.is_whole) for one in chains(node)] == [("mlx5_0", True)]
    assert [one.is_whole for one in chains(node, "0")] == [False]  # what launches set wins over the node's file


NUMBERS = st.lists(st.integers(-1, 9), max_size=9)


@given(
    st.fixed_dictionaries({
        "apps": st.dictionaries(st.sampled_from(["0", "26", "48"]), st.integers(-1, 9)),
        "pfc": NUMBERS,
        "default": st.integers(-1, 9),
        "ets": st.fixed_dictionaries({"tsa": st.lists(st.sampled_from(["ets", "strict"]), max_size=9), "bandwidth": NUMBERS, "classes": NUMBERS}),
        "buffers": st.fixed_dictionaries({"of": NUMBERS, "sizes": NUMBERS}),
    }),
    st.sampled_from([0, 26, 48]),
)  # fmt: skip
def test_a_node_that_shows_lists_of_other_lengths_is_refused_or_followed(shown, dscp):
    try:
        port = parse(Bridging, shown, "dcb")
    except DocumentError:
        return
    assert chain(Adapter("mlx5_0"), "eth0", port, str(dscp << 2)).way.code.startswith("chain_")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"ets": {"tsa": ["ets"], "bandwidth": [100], "classes": [0]}}, "dcb.ets is .*; it must be the service and"),
        ({"ets": {"tsa": ["ets"], "bandwidth": [100], "classes": [0] * 7 + [1]}}, "dcb.ets is "),
        ({"buffers": {"of": [0], "sizes": [1]}}, "dcb.buffers is .*; it must be the buffer of each of 8"),
        ({"apps": {"26": 8}}, "dcb is .*; it must be a port whose priorities are 0 to 7"),
    ],
)
def test_lists_that_do_not_fit_each_other_are_of_the_wrong_shape(part, words):
    with pytest.raises(DocumentError, match=words):
        parse(Bridging, part, "dcb")
