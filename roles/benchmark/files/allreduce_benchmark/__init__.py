# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of benchmark.py: what is measured, and on what. They run in the training environment: Python 3.8, PyTorch 2.0 or later."""
