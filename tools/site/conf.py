# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx's configuration of the documentation site; tools/site/build.py calls it."""

project = "allreduce.gpu"
author = "The allreduce.gpu authors"
project_copyright = author
root_doc = "README"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
highlight_language = "yaml+jinja"
html_theme = "sphinx_rtd_theme"
html_theme_options = {"navigation_depth": 2}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
# What antsibull-docs writes refers to pages of Ansible's own documentation, which a build without a network cannot resolve.
suppress_warnings = ["ref.ref", "ref.any"]
