# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock knows the origins that the resolver plans, and no others."""

from typing import get_args

from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.lock import DriverSource, InterpreterSource
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.interpreters import Origin
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.request_keys import KEYS


def test_origins_are_those_of_the_resolver():
    assert {one.value for one in DriverSource} == {*KEYS["driver_source"].choices} - {"auto"}
    assert {one.value for one in InterpreterSource} == {*get_args(Origin)}
