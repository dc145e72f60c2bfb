# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from html.parser import HTMLParser

from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import html
from ansible_collections.allreduce.gpu.tests.report import cluster

# How the page looks is tested in a browser: tests/report.


class Tags(HTMLParser):
    """Start tags and attributes."""

    def __init__(self, page):
        super().__init__()
        self.names, self.attributes = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs


def test_text_from_everywhere_is_escaped():
    verification = cluster.verification()
    node = verification["nodes"]["gpu-1"]
    node["address"] = node["facts"]["kernel"] = node["gpu_stack"]["reasons"][0]["text"] = cluster.HOSTILE
    node["checks"][0].update(status="failed", **dict.fromkeys(("name", "reason", "fix", "measured"), cluster.HOSTILE))
    verification["nodes"][cluster.HOSTILE] = verification["nodes"].pop("gpu-2")
    tags = Tags(html.render(cluster.build_report(verification, cluster.results(), title=cluster.HOSTILE)))

    assert not tags.names & {"script", "img", "iframe"}
    assert not [name for name, _value in tags.attributes if name.startswith("on")]


def test_why_a_check_failed_and_what_to_do_stand_apart(report):
    page = html.render(report)

    for label, words in (("Why", "module and library differ"), ("Fix", "reboot the node")):
        # Among the checks that failed, and among all of the node.
        assert len(re.findall(rf'data-label="{label}">\s*{words}\s*</td>', page)) == 2


def test_the_page_asks_nobody_for_anything(report):
    tags = Tags(html.render(report))

    assert [value for name, value in tags.attributes if name in ("href", "src") and not value.startswith("#")] == []


def test_the_same_input_gives_the_same_page(report):
    again = cluster.build_report(cluster.verification(), cluster.results(), title="Cluster A")

    assert html.render(report) == html.render(again)


def test_nothing_verified_and_nothing_trained_is_still_a_page():
    page = html.render(cluster.build_report({"format": 1, "nodes": {}}, [], title="Empty"))

    assert "No check was made." in page
    assert "No training run was found." in page


def test_a_thousand_nodes_are_a_page_a_phone_can_load(large_report):
    assert len(html.render(large_report)) < 4_000_000
