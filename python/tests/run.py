# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a file of the Python package's tests, or says in one line why it is skipped: run.py FILE MODULE...

The modules are what the file needs besides kokkosnn and pytest. With KOKKOSNN_PYTHON=1 in the environment the package
is built as a wheel and installed, as by `pip install .`, with these modules in a virtual environment
(KOKKOSNN_PYTHON_VENV, by default build/python-venv), and the tests are run there. KOKKOSNN_PYTHON_DEFINES has
definitions for CMake as a shell's words, so that a value may be a list: "A=1 'KokkosNN_CPU_LEVELS=x86-64;x86-64-v3'".
"""

import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def built_wheel(python, directory):
    """The package's wheel, which an interpreter's pip builds into an empty directory."""
    definitions = [f"-Ccmake.define.{d}" for d in shlex.split(os.environ.get("KOKKOSNN_PYTHON_DEFINES", ""))]
    command = [python, "-m", "pip", "wheel", "-q", "--no-deps", *definitions, "-w", str(directory), str(ROOT)]
    subprocess.run(command, env={"KOKKOSNN_JAX": "1", **os.environ}, check=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def installed(modules):
    """The interpreter of a virtual environment with the package and the modules."""
    venv = Path(os.environ.get("KOKKOSNN_PYTHON_VENV", ROOT / "build" / "python-venv"))
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [python, "-m", "pip", "install", "-q"]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*pip, "--force-reinstall", "--no-deps", built_wheel(python, Path(scratch))], check=True)
    subprocess.run([*pip, "pytest", *modules], check=True)
    return str(python)


def main(file, *modules):
    environment = dict(os.environ)
    if environment.get("KOKKOSNN_PYTHON") == "1":
        python = installed(modules)
        environment.pop("PYTHONPATH", None)
    else:
        python = sys.executable
        missing = [name for name in ("kokkosnn", "pytest", *modules) if importlib.util.find_spec(name) is None]
        if missing:
            reason = os.environ.get("KOKKOSNN_PYTHON_LACKS") or f"{' '.join(missing)}, for {sys.executable}"
            print(f"SKIPPED: python/tests/{file} needs {reason}; KOKKOSNN_PYTHON=1 installs all in build/python-venv")
            return 0
    command = [python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(HERE / file)]
    return subprocess.run(command, cwd=HERE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
