# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences about role monitoring."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "monitoring_form": Sentence("{subject} is {value}", "use a form such as {example}"),
    "monitoring_no_alert": Sentence(
        "monitoring_skip_alerts has {subject}, which is not an alert",
        "choose from {alerts}",
    ),
    "monitoring_password": Sentence(
        "{subject} is too short, too long, or has unprintable characters or space at either end",
        "use {least} to {most} bytes, best from a vault",
    ),
    "monitoring_no_password": Sentence(
        "{subject} is not set, and without it anyone could read the metrics",
        "set it in a vault (ansible-vault encrypt_string)",
    ),
    "monitoring_repository": Sentence("monitoring_repository lacks {subject}", "set all of {keys}"),
    "monitoring_no_repository": Sentence(
        "Neither {subject} nor EPEL has Prometheus",
        "declare a repository that has it with monitoring_repository: url, key and fingerprint",
    ),
    "monitoring_no_packages": Sentence(
        "There is no monitoring for {subject}",
        "leave these hosts out with monitoring_state: absent",
        why="{reason}",
    ),
    "monitoring_no_dcgm": Sentence(
        "There is no dcgm-exporter for {subject}",
        "set monitoring_dcgm_exporter: false there, and role health provides metrics instead",
        why="{reason}",
    ),
    "monitoring_tls": Sentence("{subject} is not set, but others of {names} are", "set all of them, or none"),
    "monitoring_no_bcrypt": Sentence(
        "The controller lacks the Python package {subject}, which hashes the password",
        "install it with pip install -r requirements.txt",
    ),
    "monitoring_no_controller": Sentence(
        "No host is in group {subject}, so nothing would scrape the nodes",
        "put the host for Prometheus there",
    ),
    "monitoring_no_address": Sentence(
        "The address of {subject} is not known, and without it {subject} would no longer be monitored",
        "set gpu_cluster_address there, or run without --limit",
    ),
    "monitoring_no_grafana": Sentence(
        "monitoring_grafana is true, but {subject} has no Grafana, and no distribution packages it",
        "install it from grafana.com's repository first",
    ),
    "monitoring_foreign": Sentence(
        "{subject} already runs on {host} and was not set up by this role",
        "stop and disable it there, or leave the host out with monitoring_state: absent",
    ),
}
