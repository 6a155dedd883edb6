# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Pages of the public headers: their comments as Markdown, with the declarations as they stand there.

Comments of the headers are text with a few forms: terms in the first 11 columns define, lines that are indented by four
spaces are code, and functions have `\\param`s. Doxygen's output loses the first two, so it only checks the comments
(docs/build).
"""

import pathlib
import re
from dataclasses import dataclass, field

DECLARES_TYPE = re.compile(r"(struct|class|enum class|concept)\b")


def as_markdown(lines: list[str]) -> str:
    result: list[str] = []
    in_code = False
    for i, line in enumerate(lines):
        is_code = line.startswith("    ") and (in_code or not line.startswith(" " * 11))
        if is_code != in_code and (is_code or line):
            result += ["", "```cpp"] if is_code else ["```", ""]
            in_code = is_code
        if is_term(line, lines[i + 1] if i + 1 < len(lines) else ""):
            result += ["", line[:11].strip(), ": " + line[11:]]
        elif line.startswith(" " * 11) and not in_code:
            result.append("  " + line.strip())
        else:
            result.append(line.removeprefix("    ") if in_code else line)
    return "\n".join(result + ["```"] * in_code)


def is_term(line: str, following: str) -> bool:
    """True for `Ordering   asynchronous on ...`, whose text goes on in column 11, where it goes on."""
    is_formed = re.fullmatch(r"[A-Z][a-z]+(?: [a-z]+)* +", line[:11]) is not None and line[11:12].strip() != ""
    goes_on = following.startswith(" " * 11)
    return is_formed and (goes_on or line[9] == " " and (not following or following[0].isupper()))


def with_parameters(lines: list[str]) -> str:
    """A comment whose `\\param`s, with what follows them indented, become a list."""
    result: list[str] = []
    in_parameter = False
    for line in lines:
        parameter = re.match(r"\\(param|return|throws) +(?:([\w:]+(?:, \w+)*) +)?(.*)", line)
        if parameter:
            kind, name, text = parameter.groups()
            if not in_parameter:
                result.append("")
            label = f"**{name}**" if kind == "param" else f"{kind} **{name}**" if kind == "throws" else "returns"
            if kind == "return" and name:
                text = f"{name} {text}"
            result.append(f"- {label}: {text}")
            in_parameter = True
        elif in_parameter and line.startswith("  "):
            result.append("  " + line.strip())
        else:
            if in_parameter:
                result.append("")
            in_parameter = False
            result.append(line)
    return as_markdown(result)


@dataclass
class Entry:
    """What one comment documents: a declaration, and those behind it that have no comment of their own."""

    comment: list[str]
    declarations: list[str] = field(default_factory=list)

    def name(self) -> str:
        declaration = re.sub(r"\btemplate <.*?>(?=\s*\n)", "", self.declarations[0] + "\n", flags=re.S)
        declaration = re.sub(r"^\s*requires\b.*\n", "", declaration, flags=re.M)
        declared_type = re.search(r"\b(?:struct|class|enum class|concept) (?:alignas\(.*?\) )?(\w+)", declaration)
        function = re.search(r"(operator\S+|\w+)\(", declaration)
        value = re.search(r"^(?:using|constexpr [^=(]*?) ?(\w+) =", declaration, re.M)
        found = declared_type if DECLARES_TYPE.match(declaration.strip()) else value or function
        return found.group(1) if found else declaration.strip().splitlines()[0]


def declaration_at(lines: list[str], i: int) -> tuple[str, int]:
    """The declaration that begins in line i, without a body, and the line behind it."""
    first = i
    while not re.search(r"[;{}]$", re.sub(r"\s*//.*", "", lines[i])):
        i += 1
    text = [re.sub(r"^(KOKKOSNN_(MPI_)?EXPORT|inline) ", "", line) for line in lines[first : i + 1]]
    is_type = any(DECLARES_TYPE.match(line) for line in text)
    is_short = text[-1].endswith((";", "}"))
    if is_type and not is_short:
        while not lines[i].startswith("}"):
            i += 1
            text.append(lines[i])
        return public_part(text), i + 1
    if not is_type and not text[-1].endswith(";"):
        text[-1] = re.sub(r"(\)[ a-z]*) \{(?!\}\)).*$", r"\1;", text[-1])
        if "}" not in lines[i]:
            while not lines[i].startswith("}"):
                i += 1
    return "\n".join(line for line in text if line.strip() != ";"), i + 1


def public_part(text: list[str]) -> str:
    """A type's text up to what is private."""
    if " private:" in text:
        text = text[: text.index(" private:")] + ["};"]
    while len(text) > 1 and text[-2] == "":
        text.pop(-2)
    return "\n".join(text)


def entries_of(header: str) -> list[Entry]:
    lines = header.splitlines()
    i = next((number for number, line in enumerate(lines) if line.startswith("namespace ")), len(lines))
    entries: list[Entry] = []
    comment: list[str] = []
    in_impl = False
    while i < len(lines):
        line = lines[i]
        if line == "namespace Impl {" or line.startswith("namespace KokkosNN::Impl"):
            in_impl = True
        elif line.startswith("}  // namespace"):
            in_impl = False
        elif in_impl or not line or line.startswith(("#", "namespace ", "//", " ", "}")) and not line.startswith("///"):
            comment = [] if not line else comment
        elif line.startswith("///"):
            comment.append(line[3:].removeprefix(" "))
        else:
            declaration, i = declaration_at(lines, i)
            if comment:
                entries.append(Entry(comment))
            if entries:
                entries[-1].declarations.append(declaration)
            comment = []
            continue
        i += 1
    return [entry for entry in entries if entry.declarations]


def head_of(header: str) -> list[str]:
    """The comment between a header's includes and its first namespace, or its end: what holds for all of it."""
    body = re.split(r"\n(?:namespace |#endif)", header)[0].splitlines()
    first = max(i for i, line in enumerate(body) if line.startswith("#")) + 1
    return [line[2:].removeprefix(" ") for line in body[first:] if line.startswith("//") or not line]


def examples_in(folder: pathlib.Path) -> dict[str, list[str]]:
    """The programs that include a header: a link, what a program says of itself, and the Python that it equals."""
    examples: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.cpp")):
        text = path.read_text()
        comment = re.search(r"\n\n((?://.*\n)+)", text).group(1)
        about, _, python = re.sub(r"^//(?:   | |)", "", comment, flags=re.M).partition("\n\n")
        entry = f"[examples/{path.name}](../../examples/{path.name}): {about.strip()}"
        if python:
            entry += f"\n\n```python\n{python.rstrip()}\n```"
        for header in re.findall(r"#include <KokkosNN/(\w+\.hpp)>", text):
            examples.setdefault(header, []).append(entry)
    return examples


@dataclass
class Elsewhere:
    """What else the project has of a header's functions."""

    page_of_gradient: dict[str, str]  # by `softmax`: the page that has `softmax_backward`
    in_c: set[str]
    in_python: set[str]
    examples: dict[str, list[str]]  # by a header's name

    @staticmethod
    def of(root: pathlib.Path, sources: dict[str, pathlib.Path]) -> "Elsewhere":
        gradients = {name.removesuffix("_backward"): page
                     for page, path in sources.items() if page != "mpi"
                     for name in re.findall(r"\bvoid (\w+_backward)\(", path.read_text())}
        in_c = set(re.findall(r"\bkokkosnn_(\w+)\(", (root / "include/KokkosNN/kokkosnn.h").read_text()))
        in_python = set(re.findall(r"^ +\"(\w+)\",?$", (root / "python/kokkosnn/__init__.py").read_text(), re.M))
        return Elsewhere(gradients, in_c, in_python, examples_in(root / "examples"))

    def line_of(self, name: str) -> str:
        """A line under a function's heading, or nothing."""
        others = []
        if name in self.page_of_gradient:
            others.append(f"Gradient: [`{name}_backward`]({self.page_of_gradient[name]}.md#{name}_backward).")
        if name in self.in_c:
            in_python = f", in Python `kokkosnn.{name}`" if name in self.in_python else ""
            others.append(f"In C `kokkosnn_{name}`{in_python}.")
        return " ".join(others)


def page_of(name: str, header: str, elsewhere: Elsewhere) -> str:
    parts = [f"# {name}", as_markdown(head_of(header)), f"```cpp\n#include <KokkosNN/{name}>\n```"]
    previous = ""
    for entry in entries_of(header):
        if entry.name() != previous:
            previous = entry.name()
            parts += [f"## {previous}", "" if name == "mpi.hpp" else elsewhere.line_of(previous)]
        parts.append("```cpp\n" + "\n\n".join(entry.declarations) + "\n```")
        parts.append(with_parameters(entry.comment))
    if name in elsewhere.examples:
        parts += ["## Examples", *elsewhere.examples[name]]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_pages(headers: pathlib.Path, pages: pathlib.Path) -> None:
    """A page a header, written only where it changes, so that Sphinx reads again what it has to."""
    pages.mkdir(exist_ok=True)
    sources = {path.stem: path for path in sorted(headers.glob("*.hpp*")) if path.name != "KokkosNN.hpp"}
    elsewhere = Elsewhere.of(headers.parent.parent, sources)
    texts = {f"{stem.split('.')[0]}.md": page_of(path.name.removesuffix(".in"), path.read_text(), elsewhere)
             for stem, path in sources.items()}
    for page in pages.glob("*.md"):
        if page.name not in texts:
            page.unlink()
    for page, text in texts.items():
        if not (pages / page).exists() or (pages / page).read_text() != text:
            (pages / page).write_text(text)
