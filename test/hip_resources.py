#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Resources of the kernels that hipcc made of the library, read from the objects of test/hip-gate's build.

The figures are those that -Rpass-analysis=kernel-resource-usage prints, from the kernels' own notes, so that objects of
an earlier run count too. Fails if a kernel spills, leaves a SIMD fewer than 4 wavefronts, or moves aligned rows
otherwise than by 16 bytes. Kernels on matrix cores keep tiles in registers: as many wavefronts as they are compiled
for, one or two, are enough. So are two or three for others that are compiled for so many.
"""
import argparse
import collections
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

REGISTERS = 512  # of a lane and SIMD; allocated by eights
MOST_WAVES = 8
LEAST_WAVES = 4
ROOT = pathlib.Path(__file__).resolve().parent.parent


def tool(name):
    """LLVM's tool beside hipcc."""
    command = ["hipcc", "-print-prog-name=" + name]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return path if pathlib.Path(path).exists() else name


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def enumerators(name):
    """The enumerators of a C++ enum in order, as the demangled names have numbers."""
    if name == "RowOperator":
        table = (ROOT / "include/KokkosNN/impl/operators.def").read_text()
        return re.findall(r"^KOKKOSNN_OPERATOR\((\w+),", table, re.MULTILINE)
    for header in sorted((ROOT / "include/KokkosNN").glob("*.hpp")):
        found = re.search(r"enum class " + name + r"[^{]*\{([^}]*)\}", header.read_text())
        if found:
            body = re.sub(r"//.*", "", found.group(1))
            return [part.strip() for part in body.split(",") if part.strip()]
    sys.exit("no enum " + name)


def readable(symbol, enums):
    """The functor of a Kokkos launch, and its launch bounds, without namespaces; None if it is not the library's."""
    found = re.search(r"ParallelFor<(.*?), Kokkos::(?:Team|Range|MDRange)Policy", symbol)
    if not found or "KokkosNN::" not in found.group(1):
        return None
    text = re.sub(r"\b(?:KokkosNN|Kokkos|Impl|Experimental)::", "", found.group(1))
    for name, values in enums.items():
        text = re.sub(r"\(" + name + r"\)(\d+)", lambda m: values[int(m.group(1))], text)
    text = text.replace("floating_point_wrapper<__half>", "half_t").replace(" const", "")
    bounds = re.search(r"LaunchBounds<(\d+)u(?:, (\d+)u)?", symbol)
    if not bounds:
        return text
    is_for_fewer = bounds.group(2) and ("MfmaUnit<" in text or bounds.group(2) in "23")
    return text + " <= " + bounds.group(1) + (" x " + bounds.group(2) if is_for_fewer else "")


class Kernel:
    def __init__(self, file, name, note):
        number = lambda key: int(re.search(r"\." + key + r":\s*(\d+)", note).group(1))
        self.file, self.name = file, name
        self.vgprs = number("vgpr_count")
        self.sgprs = number("sgpr_count")
        self.spills = number("vgpr_spill_count")
        self.sgpr_spills = number("sgpr_spill_count")
        self.stack = number("private_segment_fixed_size")
        self.lds = number("group_segment_fixed_size")
        self.loads = self.stores = self.flat = 0
        bound = re.search(r" <= \d+ x (\d+)", name)
        self.least_waves = min(LEAST_WAVES, int(bound.group(1))) if bound else LEAST_WAVES
        self.waves = min(MOST_WAVES, REGISTERS // max(8, -(-self.vgprs // 8) * 8))

    def complaints(self):
        if self.spills and self.stack:  # without a stack they are in accumulators' registers, beyond 256
            yield "%d registers are spilled" % self.spills
        if self.waves < self.least_waves:
            yield "%d wavefronts a SIMD with %d registers" % (self.waves, self.vgprs)
        # RowInTeam of rows that are aligned, with a value a column: packs of 16 bytes of the wider type, which beside
        # 16-bit elements is that of a mask's bias
        if self.name.startswith("RowInTeam<") and "aligned" in self.name:
            if not self.loads + self.stores and not re.search("ElementMask<(half_t|Stored16)", self.name):
                yield "no access of 16 bytes"
            # The bias of a mask has one of several types: LLVM no longer sees that it is in global memory.
            if self.flat and "Element" not in self.name:
                yield "%d accesses through flat addresses" % self.flat


def objects_of(build):
    """The objects of the library that hold kernels; a build's folder may have others, of an earlier configuration."""
    inputs = re.findall(r"^ +(\S+\.o)$", run("ninja", "-C", str(build), "-t", "query", "libKokkosNN.a"), re.MULTILINE)
    return sorted(build / path for path in inputs if "/instantiate/" in path or "instantiations" in path)


def kernels_of(obj, arch, tools, enums, folder):
    """The library's kernels in an object."""
    bundle, code = folder / "bundle", folder / "code"
    code.unlink(missing_ok=True)
    run(tools["objcopy"], "--dump-section", ".hip_fatbin=" + str(bundle), obj, "/dev/null")
    run(tools["bundler"], "--unbundle", "--type=o", "--input=" + str(bundle), "--output=" + str(code),
        "--targets=hipv4-amdgcn-amd-amdhsa--" + arch)
    notes = run(tools["readelf"], "--notes", str(code))
    entries = re.split(r"\n\s+- \.agpr_count:", notes)[1:]
    symbols = [re.search(r"\.name:\s*(\S+)", entry).group(1) for entry in entries]
    names = run(tools["cxxfilt"], input="\n".join(symbols)).split("\n")
    kernels = {}
    for entry, symbol, name in zip(entries, symbols, names):
        text = readable(name, enums)
        if text:
            kernels[symbol] = Kernel(obj.name.replace(".cpp.o", ""), text, entry)
    kernel = None
    for line in run(tools["objdump"], "-d", "--no-show-raw-insn", "--no-leading-addr", str(code)).splitlines():
        if line.endswith(">:"):
            kernel = kernels.get(line[line.index("<") + 1:-2])
        elif kernel:
            word = line.split(None, 1)[0] if line.strip() else ""
            kernel.loads += word == "global_load_dwordx4"
            kernel.stores += word == "global_store_dwordx4"
            kernel.flat += word.startswith(("flat_load", "flat_store"))
    return kernels.values()


FIELDS = ["vgprs", "sgprs", "spills", "sgpr_spills", "stack", "lds", "waves", "loads", "stores"]


def write_csv(path, by_arch):
    rows = collections.defaultdict(dict)
    for arch, kernels in by_arch.items():
        for k in kernels:
            rows[k.file, k.name][arch] = k
    with open(path, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["file", "kernel", "arch"] + FIELDS)
        for (file, name), by in sorted(rows.items()):
            for arch, k in by.items():
                writer.writerow([file, name, arch] + [getattr(k, field) for field in FIELDS])


def summary(by_arch, compiler, build):
    lines = ["# HIP: what the compiler says of the kernels", "",
             "By `test/hip-gate --record` with %s." % compiler,
             "Nothing ran: no AMD GPU was at hand. `hip-resources.csv` has every kernel:",
             "registers of a thread (`vgprs`) and of a wavefront (`sgprs`), how many of them are spilled, to memory "
             "(`spills`) or to",
             "lanes of a vector register (`sgpr_spills`), static LDS in bytes (what a plan asks for at launch comes on "
             "top), the",
             "wavefronts that a SIMD takes by its registers (of at most 8), and the loads and stores of 16 bytes in "
             "the code.",
             "A kernel's last number is the largest team that it is compiled for, and on matrix cores, behind x, the "
             "wavefronts a SIMD.", ""]
    for arch, kernels in by_arch.items():
        lines += ["## " + arch, "",
                  "| file | kernels | most registers | spilled | wavefronts a SIMD: least, median | static LDS |",
                  "|---|---|---|---|---|---|"]
        files = collections.defaultdict(list)
        for k in kernels:
            files[k.file].append(k)
        for file, ks in sorted(files.items()):
            waves = sorted(k.waves for k in ks)
            lines.append("| %s | %d | %d | %d | %d, %d | %d |" % (
                file, len(ks), max(k.vgprs for k in ks), sum(k.spills for k in ks), waves[0], waves[len(waves) // 2],
                max(k.lds for k in ks)))
        lines.append("")
        missing = sorted({path.stem for path in (build / "src/instantiate").glob("*.cpp")} - set(files))
        if missing:
            lines += ["Without kernels, or not compiled for this table: %s." % ", ".join(missing), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", metavar="PATH", help="write PATH.csv and PATH.md")
    parser.add_argument("build", type=pathlib.Path, help="build folder")
    parser.add_argument("archs", nargs="+", metavar="ARCH[:FILE,...]",
                        help="an architecture and its files to look at; all")
    options = parser.parse_args()
    tools = {short: tool(name) for short, name in (("objcopy", "llvm-objcopy"), ("bundler", "clang-offload-bundler"),
                                                   ("readelf", "llvm-readelf"), ("objdump", "llvm-objdump"),
                                                   ("cxxfilt", "llvm-cxxfilt"))}
    enums = {name: enumerators(name) for name in ("RowOperator", "RowForm")}
    enums.update(ExpAccuracy=["full", "fast"], Backend=enumerators("Backend"))
    by_arch, wrong = {}, []
    objects = objects_of(options.build)
    with tempfile.TemporaryDirectory() as folder:
        for asked in options.archs:
            arch, _, files = asked.partition(":")
            kernels = []
            for obj in objects:
                if not files or obj.name.replace(".cpp.o", "") in files.split(","):
                    kernels += kernels_of(obj, arch, tools, enums, pathlib.Path(folder))
            by_arch[arch] = kernels
            wrong += ["%s %s: %s: %s" % (arch, k.file, k.name, text) for k in kernels for text in k.complaints()]
            waves = collections.Counter(k.waves for k in kernels)
            print("%s: %d kernels, %d registers spilled, wavefronts a SIMD: %s" % (
                arch, len(kernels), sum(k.spills for k in kernels),
                ", ".join("%d of %d" % (n, w) for w, n in sorted(waves.items()))))
            if not kernels:
                wrong.append(arch + ": no kernel was found")
    if options.record:
        version = run("hipcc", "--version").splitlines()
        compiler = ", ".join(line.strip() for line in version if re.match(r"HIP version|.*clang version", line))
        write_csv(options.record + ".csv", by_arch)
        pathlib.Path(options.record + ".md").write_text(summary(by_arch, compiler, options.build))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
