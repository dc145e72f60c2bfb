# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences about role monitoring."""

from __future__ import annotations

SENTENCES = {
    "monitoring_form": "{subject} is {value}; use a form such as {example}.",
    "monitoring_no_alert": "monitoring_skip_alerts has {subject}, which is not an alert; choose from {alerts}.",
    "monitoring_password": (
        "{subject} is too short, too long, or has unprintable characters or space at either end; use {least} to {most} bytes, best from a "
        "vault."
    ),
    "monitoring_no_password": (
        "{subject} is not set, and without it anyone could read the metrics; set it in a vault (ansible-vault encrypt_string)."
    ),
    "monitoring_repository": "monitoring_repository lacks {subject}; set all of {keys}.",
    "monitoring_no_repository": (
        "Neither {subject} nor EPEL has Prometheus; declare a repository that has it with monitoring_repository: url, key and "
        "fingerprint."
    ),
    "monitoring_no_packages": (
        "There is no monitoring for {subject}: {reason}; leave these hosts out with monitoring_state: absent."
    ),
    "monitoring_no_dcgm": (
        "There is no dcgm-exporter for {subject}: {reason}; set monitoring_dcgm_exporter: false there, and role health provides metrics "
        "instead."
    ),
    "monitoring_tls": "{subject} is not set, but others of {names} are; set all of them, or none.",
    "monitoring_no_bcrypt": (
        "The controller lacks the Python package {subject}, which hashes the password; install it with pip install -r requirements.txt."
    ),
    "monitoring_no_controller": (
        "No host is in group {subject}, so nothing would scrape the nodes; put the host for Prometheus there."
    ),
    "monitoring_no_address": (
        "The address of {subject} is not known, and without it {subject} would no longer be monitored; set gpu_cluster_address there, or "
        "run without --limit."
    ),
    "monitoring_no_grafana": (
        "monitoring_grafana is true, but {subject} has no Grafana, and no distribution packages it; install it from grafana.com's "
        "repository first."
    ),
    "monitoring_foreign": (
        "{subject} already runs on {host} and was not set up by this role; stop and disable it there, or leave the host out with "
        "monitoring_state: absent."
    ),
}
