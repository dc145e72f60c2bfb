# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of make tables."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tools.tables import __main__ as main
from tools.tables.__main__ import bring_up_to_date, pythons


def test_the_next_python_is_asked_for_too():
    assert pythons([{"python": ["3.9"]}, {"python": ["3.10"]}]) == ["3.9", "3.10", "3.11"]


def test_rows_stay_in_order_of_version(release):
    rows = [{"version": "2.5.1"}, {"version": "2.10.0"}]
    said = bring_up_to_date(rows, [release, replace(release, version="2.9.0", requires=())], "2026-11-23")
    assert [row["version"] for row in rows] == ["2.5.1", "2.6.0", "2.10.0"]
    assert said == ["2.6.0: new", "2.9.0: no row, as its metadata does not tell its CUDA"]


def test_companions_belong_to_the_one_release_that_they_take(monkeypatch):
    takes = {"0.29.0": "torch>=2.14", "0.19.1": "torch==2.4.1", "0.19.0": "torch==2.4.0", "0.18.2": "torch==2.4.0"}
    takes |= {"0.13.0": "torch==1.12.0", "0.12.0": "torch==1.11.0"}
    asked = []

    class Recorded:
        def releases(self, name, pythons):
            return dict.fromkeys(reversed(takes), "3.9")

        def requirements(self, name, version, python):
            asked.append(version)
            return [takes[version]]

    monkeypatch.setattr(main, "INDEX", Recorded())
    monkeypatch.setattr(main, "READERS", 5)
    with ThreadPoolExecutor(1) as side:
        found = main.companions("torchvision", ["3.9"], "1.12.1", side)
    assert (found["2.4.1"], found["2.4.0"]) == ("0.19.1", "0.19.0")
    assert "0.12.0" not in asked
