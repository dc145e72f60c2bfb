# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels of one module, small enough to be written for each test."""

import base64
import hashlib
import zipfile


def wheel(place, name, version, text=None, scripts=()):
    """Write a wheel of one module with a version, or with this text; scripts: programs that call its function main."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\n" if text is None else text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        points = "".join(f"{script} = {name}:main\n" for script in scripts)
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{points}"
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items())
    record += f"{info}/RECORD,,\n"
    with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, content)


def _digest(text):
    """The SHA-256 of a text as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
