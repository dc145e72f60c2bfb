# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import os
import signal

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.interrupts import Interrupted, Interrupts


def raise_signal(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_interrupts_and_later_ones_are_ignored(number):
    with Interrupts():
        with pytest.raises(Interrupted):
            raise_signal(number)
        raise_signal(signal.SIGTERM)


def test_the_block_in_which_a_signal_is_deferred_ends_first():
    done = []
    with Interrupts() as interrupts, pytest.raises(Interrupted), interrupts.deferred():
        raise_signal(signal.SIGINT)
        done.append(True)
    assert done


def test_a_deferred_signal_counts_where_the_block_fails_too():
    with Interrupts() as interrupts, pytest.raises(Interrupted), interrupts.deferred():
        raise_signal(signal.SIGINT)
        raise OSError("no route to host")


def test_the_signal_is_delivered_to_whom_it_was_meant_for_afterwards():
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with Interrupts() as interrupts, pytest.raises(Interrupted):
            raise_signal(signal.SIGTERM)
        assert received == []
        interrupts.deliver()
        assert received == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_parent_that_has_gone_interrupts_once(monkeypatch):
    with Interrupts() as interrupts:
        interrupts.check()
        monkeypatch.setattr(os, "getppid", lambda: 1)
        with pytest.raises(Interrupted):
            interrupts.check()
        interrupts.check()
    interrupts.deliver()
