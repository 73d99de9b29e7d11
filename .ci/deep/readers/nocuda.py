"""Lets PyTorch's wheel for CUDA run on a CPU without CUDA's libraries.

Usage: nocuda.py FOLDER, the torch/lib of an installed wheel. For Linux there is no smaller wheel on PyPI, and what it is
linked to is another 3 GB that nothing here calls. In their places go libraries of the same names, versions and symbols, in
which every function returns an error.
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


symbols = wanted()
loose, shmem = symbols.pop(""), symbols.pop("NVSHMEM", set())
for soname, names in sorted(symbols.items()):
    options, version = ["-Wl,-soname," + soname], soname
    if soname.startswith("libnvshmem"):
        names, version = shmem, "NVSHMEM"
    if names:  # a library that gives its symbols its own name as their version
        script = lib / "versions"
        script.write_text(f"{version} {{ *; }};")
        options.append(f"-Wl,--version-script={script}")
    else:  # the first without versions has all symbols that want none
        names, loose = loose, set()
    subprocess.run(["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-", *options, "-o", lib / soname],
                   input="".join(map(function, sorted(names))), text=True, check=True)
