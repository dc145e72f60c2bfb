# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any text is read, and what a program chose comes back as it was."""

from binascii import hexlify

from ansible_collections.allreduce.gpu.plugins.module_utils.host import audit
from hypothesis import given
from hypothesis import strategies as st


@given(st.text())
def test_any_text_is_read(text):
    for one in audit.events(text) + audit.events(f"type=AVC msg=audit(1.0:2): {text}"):
        assert isinstance(audit.denials([one], 1), list)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1))
def test_a_command_line_comes_back_out_of_its_digits(words):
    digits = hexlify("\0".join(words).encode()).decode().upper()
    assert audit.decoded(digits) == " ".join(words)


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1))
def test_a_quoted_text_is_never_taken_for_digits(text):
    assert audit.decoded(f'"{text}"') == text
