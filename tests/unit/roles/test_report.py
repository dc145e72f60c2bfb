# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that role report prints once the report is written."""

from pathlib import Path

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from tests.support.fake_node import template

TASKS = Path(__file__).resolve().parents[3] / "roles" / "report" / "tasks" / "main.yml"


def test_the_verdict_fits_a_terminal_of_80_columns():
    [task] = [
        one["allreduce.gpu.show"] for one in yaml.safe_load(TASKS.read_text("utf-8")) if "allreduce.gpu.show" in one
    ]
    sentences = ["2 nodes, 157 checks.", "The nodes share the processors of one machine: this says nothing. " * 3]
    written = {"verdict": {"sentences": sentences}, "files": ["/srv/reports/report.html"]}
    lines = Templar(DataLoader(), variables={"__report_written": written}).template(template(task["lines"]))
    assert max(len(line) for line in lines) <= 80
    assert " ".join(lines[:-1]).split() == " ".join(sentences).split()
    assert lines[-1] == "Open /srv/reports/report.html in a browser."
