# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.sizes import free_words, needed_words


@pytest.mark.parametrize(
    ("size", "free", "needed"),
    [
        (0, "0 KiB", "0 KiB"),
        (8193, "8 KiB", "9 KiB"),
        (60289024, "57 MiB", "58 MiB"),
        (1 << 30, "1.0 GiB", "1.0 GiB"),
        (2106818560, "1.9 GiB", "2.0 GiB"),
    ],
)
def test_what_is_free_is_rounded_down_and_what_is_needed_up(size, free, needed):
    assert (free_words(size), needed_words(size)) == (free, needed)
