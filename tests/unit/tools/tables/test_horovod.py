# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases of Horovod somebody has to compile and to write a row of."""

from tools.tables.horovod import missing


def test_only_what_is_newer_than_every_row_is_missing():
    rows = [{"version": "0.28.1"}, {"version": "0.27.0"}]
    assert missing(rows, ["0.26.0", "0.28.0", "0.28.1", "0.28.10", "0.29.0"]) == ["0.28.10", "0.29.0"]
