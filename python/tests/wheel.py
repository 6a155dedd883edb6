# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the package's wheel and tries it in an empty virtual environment, or says in one line why it is skipped

It is built with KOKKOSNN_PYTHON=1 in the environment alone (run.py), as that takes as long as the library does.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import run

NEEDS_NOTHING = """
import importlib.util, sys, kokkosnn
assert importlib.util.find_spec("numpy") is None, "this environment is not empty"
assert kokkosnn.__file__.startswith(sys.prefix), kokkosnn.__file__
configuration = kokkosnn.configuration()
assert configuration["version"] == sys.argv[1], configuration
print(configuration)
"""
COMPUTES = """
import kokkosnn, numpy as np
x = np.arange(12, dtype=np.float32).reshape(3, 4)
exact = np.exp(x - x.max(-1, keepdims=True))
np.testing.assert_allclose(kokkosnn.softmax(x), exact / exact.sum(-1, keepdims=True), rtol=1e-6)
"""


def check_contents(wheel):
    """One module of the stable ABI from Python 3.12 on, the Python files, the licence, and nothing of the C++ build."""
    name, _, *tags, platform = wheel.stem.split("-")
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    expected = ["cp312", "abi3"] if sys.version_info >= (3, 12) else [own, own]
    assert name == "kokkosnn" and tags == expected and platform != "any", wheel.name
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
    sources = {f"kokkosnn/{path.name}" for path in (run.ROOT / "python" / "kokkosnn").iterdir() if path.is_file()}
    metadata = {path for path in files if path.split("/")[0].endswith(".dist-info")}
    (module,) = files - sources - metadata
    assert sources <= files, sources - files
    assert module.startswith("kokkosnn/_core.") and module.endswith(".so"), module
    assert ("abi3" in module) == (sys.version_info >= (3, 12)), module
    assert any(path.endswith("licenses/LICENSE") for path in metadata), metadata


def main():
    if os.environ.get("KOKKOSNN_PYTHON") != "1":
        print("SKIPPED: python/tests/wheel.py builds the library for a wheel by KOKKOSNN_PYTHON=1 alone")
        return 0
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", f"{scratch}/venv"], check=True)
        python = f"{scratch}/venv/bin/python"
        wheel = run.built_wheel(python, Path(scratch))
        print(f"{wheel.name}: {wheel.stat().st_size >> 20} MiB")
        check_contents(wheel)
        pip = [python, "-m", "pip", "install", "-q"]
        tried = {"check": True, "cwd": scratch, "env": environment}
        subprocess.run([*pip, "--no-index", str(wheel)], **tried)
        subprocess.run([python, "-c", NEEDS_NOTHING, wheel.stem.split("-")[1]], **tried)
        subprocess.run([*pip, "numpy"], **tried)
        subprocess.run([python, "-c", COMPUTES], **tried)
    return 0


if __name__ == "__main__":
    sys.exit(main())
