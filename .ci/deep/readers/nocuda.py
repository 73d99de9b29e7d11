"""Lets PyTorch's wheel for CUDA run on a CPU without CUDA's libraries.

Usage: nocuda.py FOLDER [LIBRARY SOURCE OUT FLAG...]. FOLDER is the torch/lib of an installed wheel. For Linux there is no
smaller wheel on PyPI, and what it is linked to is another 3 GB that nothing here calls. In their places go libraries of the
same names, versions and symbols, in which every function returns an error. With more arguments, only the LIBRARY of this name
is made, as OUT, with the functions of SOURCE, and errors for those that SOURCE lacks.
"""
import pathlib
import re
import subprocess
import sys

lib = pathlib.Path(sys.argv[1])
CUDA = re.compile(r"lib(?:cu|nccl|nv).*")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def wanted():
    """Returns the symbols that torch wants of each library; those without a version under ""."""
    symbols = {"": set()}
    for file in [*lib.glob("libtorch*.so"), lib / "libc10_cuda.so"]:
        for name in re.findall(r"\(NEEDED\).*\[(.*?)\]", output("readelf", "-dW", file)):
            if CUDA.fullmatch(name):
                symbols.setdefault(name, set())
        for symbol in re.findall(r" U (\S+)", output("nm", "-D", "--undefined-only", file)):
            name, _, version = symbol.partition("@")
            if CUDA.fullmatch(version):
                symbols.setdefault(version, set()).add(name)
            elif version == "NVSHMEM":
                symbols.setdefault(version, set()).add(name)
            elif not version and re.match("cu|nccl|nv", name):
                symbols[""].add(name)
    return symbols


def function(name):
    if name.endswith(("String", "Name")):
        return f'const char *{name}(int e) {{ return "no CUDA here"; }}\n'
    return f"int {name}(void) {{ return 100; }}\n"  # cudaErrorNoDevice


def make(soname, version, names, out, source="", flags=()):
    """Makes a library. If its symbols have a version, so has each of these names."""
    options = ["-Wl,-soname," + soname, *flags]
    if version:
        script = out.with_name("versions")
        script.write_text(f"{version} {{ *; }};")
        options.append(f"-Wl,--version-script={script}")
    there = set(re.findall(r"^int (\w+)\(", source, re.M))
    text = source + "".join(map(function, sorted(names - there)))
    subprocess.run(["cc", "-w", "-O1", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-", *options, "-o", out], input=text, text=True, check=True)


symbols = wanted()
loose, shmem = symbols.pop(""), symbols.pop("NVSHMEM", set())
if sys.argv[2:]:
    soname, source, out, *flags = sys.argv[2:]
    make(soname, soname, symbols[soname], pathlib.Path(out), pathlib.Path(source).read_text(), flags)
    sys.exit()
for soname, names in sorted(symbols.items()):
    version = soname if names else ""  # a library that gives its symbols its own name as their version
    if soname.startswith("libnvshmem"):
        names, version = shmem, "NVSHMEM" if shmem else ""
    elif not names:  # the first without versions has all symbols that want none
        names, loose = loose, set()
    make(soname, version, names, lib / soname)
