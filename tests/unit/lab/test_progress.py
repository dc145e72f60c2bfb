# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import time

import pytest

from tests.lab import __main__ as lab
from tests.lab import hosts, image, leftovers, paths, progress, replicas
from tests.lab.job import _shown

EVERY = 0.2
FAILED = subprocess.CompletedProcess((), 1, "", "no mirror")


@pytest.fixture
def lines(capfd):
    """Return what was said so far, without the time."""

    def read():
        return [line.partition("] lab: ")[2] for line in capfd.readouterr().err.splitlines()]

    return read


def test_silence_is_broken_again_and_again(lines):
    with progress.Working("building", EVERY):
        time.sleep(EVERY * 3.5)
    said = lines()
    assert len(said) == 3
    assert all(line.startswith("building: goes on, for 0:00") for line in said)


def test_it_ends_with_its_block(lines):
    with progress.Working("building", EVERY):
        pass
    time.sleep(EVERY * 2)
    assert lines() == []


def test_who_prints_lines_breaks_no_silence(lines):
    with progress.Working("building", EVERY * 5) as working:
        for _line in range(8):
            time.sleep(EVERY)
            working.shown()
    assert lines() == []


def test_what_is_said_is_what_goes_on(lines):
    with progress.Working("waiting", EVERY):
        progress.say("importing the image")
        time.sleep(EVERY * 1.5)
    assert [line.partition(",")[0] for line in lines()] == ["importing the image", "importing the image: goes on"]


def test_while_an_image_is_made_the_image_is_named(lines, monkeypatch, tmp_path):
    """Not what was packed for it before."""
    monkeypatch.setattr(image, "prepare", lambda distribution: progress.say("packing Python") or tmp_path)
    monkeypatch.setattr(image, "_recipe", lambda distribution: "digest")
    monkeypatch.setattr(image, "customization", lambda distribution: "")
    monkeypatch.setattr(paths, "LAB", tmp_path)
    monkeypatch.setattr(paths, "IMAGES", tmp_path)
    monkeypatch.setattr(image.subprocess, "run", lambda argv, **_more: time.sleep(EVERY * 1.5) or FAILED)
    with progress.Working("making hosts", EVERY), pytest.raises(progress.LabError, match="no mirror"):
        image._from_archive(replicas.get("ubuntu2204"), "localhost/image")
    said = [line.partition(",")[0] for line in lines()]
    made = "building the bookworm image as ubuntu2204 with mmdebstrap (usually a minute)"
    assert said == ["packing Python", made, f"{made}: goes on"]


def test_of_a_playbook_the_task_is_named(lines, monkeypatch):
    monkeypatch.setattr(progress.Working.__init__, "__defaults__", (EVERY,))

    def output():
        yield "TASK [allreduce.gpu.nvidia_driver : Install and hold the planned driver packages] ***\n"
        time.sleep(EVERY * 1.5)
        yield "ok: [gpu-1]\n"

    assert len(list(_shown(output(), "site"))) == 2
    assert [line.partition(",")[0] for line in lines()] == [
        "site: allreduce.gpu.nvidia_driver : Install and hold the planned driver packages: goes on"
    ]


def test_a_removal_says_what_it_does_before_it_begins(lines, monkeypatch, tmp_path):
    said = []
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    monkeypatch.setattr(leftovers, "clear_when_orphaned", lambda: None)
    monkeypatch.setattr(hosts, "purge", lambda: said.extend(lines()))
    lab._purge(None)
    assert said == ["removing hosts, network, images, keys and reports (usually half a minute)"]
