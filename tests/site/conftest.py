# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The browser of tests/report, for the site that `make docs` has built."""

from tests.report.conftest import browser

__all__ = ["browser"]
