# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the compatibility tables current: read package indexes, write rows, keep hand-verified columns."""

import sys
from pathlib import Path

# The readers of the index are the collection's own: the plan asks them, too.
sys.path.append(str(Path(__file__).resolve().parents[2] / ".collections"))
