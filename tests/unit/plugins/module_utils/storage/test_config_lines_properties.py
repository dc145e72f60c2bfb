# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line of ours leaves no trace in a file of others, whatever they wrote."""

from ansible_collections.allreduce.gpu.plugins.module_utils.storage.config_lines import MARK, array_entry, with_line
from hypothesis import given
from hypothesis import strategies as st

RECORD = {
    "mount_point": "/my scratch",
    "filesystem": "00000002-0000-4000-8000-000000000000",
    "array": {"name": "scratch", "uuid": "a26bf396-3138-9f83-0df1-722df404fe4c", "chunk_kib": 512},
}
LINES = st.lists(
    st.text(st.characters(exclude_characters="\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029", exclude_categories=["Cs"]))
)


@given(LINES)
def test_there_and_gone(lines):
    text, line = "".join(one + "\n" for one in lines if one != MARK), array_entry(RECORD)
    key = line.split()[:2]
    there = with_line(text, line, key)
    assert there.splitlines().count(line) == 1 and with_line(there, line, key) == there
    assert with_line(there, None, key) == text
    changed = with_line(there, line + " spares=1", key)
    assert changed.splitlines().count(line + " spares=1") == 1 and line not in changed.splitlines()
