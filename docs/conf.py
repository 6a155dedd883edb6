# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration. The root of the sources is the project's, so that links in Markdown hold on the site, too."""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "docs"))

import headers  # noqa: E402

project = "KokkosNN"
author = "The KokkosNN authors"
copyright = "2026 The KokkosNN authors"  # Sphinx asks for this name
release = re.search(r"^  VERSION ([0-9.]+)$", (root / "CMakeLists.txt").read_text(), re.M).group(1)

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "examples/README.md",
    "packaging/README.md",
    "perf/README.md",
    "python/README.md",
    "perf/results/*.md",
    "src/README.md",
]
html_theme = "furo"
html_title = f"KokkosNN {release}"
html_show_sphinx = False


def setup(app) -> None:
    app.connect("builder-inited", lambda _app: headers.write_pages(root / "include/KokkosNN", root / "docs/headers"))
