# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.text_blocks import with_block, without_lines

OURS = "# BEGIN n\na\nb\n# END n\n"


@pytest.mark.parametrize(
    ("text", "block", "first", "wanted"),
    [
        ("", "a\nb", False, OURS),
        ("x\n", "a\nb\n", False, "x\n" + OURS),
        ("x\n", "a\nb", True, OURS + "x\n"),
        ("x", "a\nb", False, "x\n" + OURS),
        ("x\n# BEGIN n\nc\n# END n\ny\n", "a\nb", True, "x\n" + OURS + "y\n"),
        ("x\n# BEGIN n\nc\n# END n\ny\n", "", True, "x\ny\n"),
        ("x\n# BEGIN other\nc\n# END other\n", "", True, "x\n# BEGIN other\nc\n# END other\n"),
        ("# END n\n# BEGIN n\n", "", False, "# END n\n# BEGIN n\n"),
        ("no end of line", "", False, "no end of line"),
    ],
)
def test_block(text, block, first, wanted):
    assert with_block(text, "n", block, first) == wanted
    assert with_block(wanted, "n", block, first) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("127.0.1.1 node\n127.0.1.1 nodes\n", "# 127.0.1.1 node\n127.0.1.1 nodes\n"),
        ("# 127.0.1.1 node\n", "# 127.0.1.1 node\n"),
        ("127.0.1.1 node", "# 127.0.1.1 node"),
        ("", ""),
    ],
)
def test_lines(text, wanted):
    assert without_lines(text, r"127\.0\.1\.1 node|x") == wanted
    assert without_lines(wanted, r"127\.0\.1\.1 node|x") == wanted
