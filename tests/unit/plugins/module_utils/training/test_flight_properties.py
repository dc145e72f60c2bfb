# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps of any values, and any bytes in the place of a dump."""

import contextlib
import json
import pickle
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.module_utils.training import flight
from hypothesis import given
from hypothesis import strategies as st

WRITTEN = Path(__file__).with_name("dumps").joinpath("absent-rank0").read_bytes()
ENTRY = {"process_group": ("0", "default_pg"), "collective_seq_id": 1, "profiling_name": "nccl:all_reduce"}

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=20,
)
NAMES = ["process_group", "collective_seq_id", "profiling_name", "state", "frames", "pg_id", "is_p2p", "input_sizes"]


@given(entry=st.dictionaries(st.sampled_from(NAMES), PLAIN), config=PLAIN, status=PLAIN)
def test_plain_values_are_read_whatever_they_are(entry, config, status):
    dump = {"entries": [dict(ENTRY, **entry)], "pg_config": config, "pg_status": status}
    assert repr(flight.load(pickle.dumps(dump, 2))) == repr(dump)
    found = flight.groups(dump)
    assert all(len(json.dumps(group)) < 100000 for group in found.values())


@given(st.binary(max_size=300))
def test_bytes_are_a_dump_or_an_error(data):
    for value in (data, b"\x80\x02" + data, WRITTEN[: 5 * len(data)] + data):
        with contextlib.suppress(flight.DumpError):
            flight.groups(flight.load(value))
