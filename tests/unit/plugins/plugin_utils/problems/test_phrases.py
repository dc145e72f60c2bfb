# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import doctest
import json
from xml.etree.ElementTree import fromstring

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.topology import natural_key
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems import phrases as text
from hypothesis import given
from hypothesis import strategies as st


def test_examples_in_the_documentation():
    assert doctest.testmod(text).failed == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("50 %\r100 %\r\ndone", "50 %\n100 %\ndone"),
        ("\x1b[1;31mred\x1b[0m\x1b]0;title\x07", "red"),
        ("a\x00b\u202ec\ud800", "a\ufffdb\ufffdc\ufffd"),
    ],
)
def test_clean(value, expected):
    assert text.clean(value) == expected


@given(st.text(st.characters(exclude_categories=[])))
def test_clean_text_fits_into_utf8_xml_and_json(value):
    cleaned = text.clean(value)

    assert json.loads(json.dumps(cleaned)) == cleaned
    escaped = cleaned.replace("&", "&amp;").replace("<", "&lt;")
    assert (fromstring(f"<a>{escaped}</a>".encode()).text or "") == cleaned


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (0, "0"),
        (1212.5, "1,212"),
        (2.3026, "2.303"),
        (0.4127, "0.4127"),
        (0.00001234, "1.2e-05"),
        (-7, "-7"),
    ],
)
def test_quantity(value, expected):
    assert text.quantity(value) == expected


LONG = "9" * 5000  # more digits than Python makes a number of


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["b", "a"], "a, b"),
        (["gpu-10", "gpu-2", "gpu-1"], "gpu-1, gpu-2, gpu-10"),
        ([f"gpu-{number}" for number in range(1, 1001)], "gpu-[1-1000]"),
        (["n08", "n09", "n10", "n11"], "n[08-11]"),
        (["n1", "n2", "n3", "n01"], "n01, n[1-3]"),
        (["a1.lab", "a2.lab", "b1.lab", "b2.lab", "head"], "a[1-2].lab, b[1-2].lab, head"),
        (["9" * 5000 + f":0{number}" for number in range(4)], "9" * 5000 + ":[00-03]"),
        ([LONG + str(number) for number in range(4)], f"{LONG[:-17]}[{LONG[-17:]}0-{LONG[-17:]}3]"),
    ],
)
def test_hostlist(names, expected):
    assert text.hostlist(names) == expected


@given(st.sets(st.integers(0, 3000), min_size=4), st.sampled_from(["d", "04d"]))
def test_a_hostlist_names_every_node_once(numbers, shape):
    folded = text.hostlist(f"node{number:{shape}}" for number in numbers)
    inner = folded.removeprefix("node[").removesuffix("]")
    named = [part.split("-") for part in inner.split(",")]

    assert sorted(number for part in named for number in range(int(part[0]), int(part[-1]) + 1)) == sorted(numbers)


@given(st.lists(st.text(alphabet="ab01\u00b2\u0663-_ "), unique=True))
def test_no_two_names_share_a_place(names):
    """A sort key that two names have would leave their order to chance."""
    assert len({tuple(natural_key(name)) for name in names}) == len(names)
