"""Decodes units on the CPU, with the program that comes in the same wheel."""

import ctypes
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

import torch

from .files import DF11Error

PROGRAM = "df11-convert"


def program() -> str:
    """Returns where the program is: what this package was installed with, or else the PATH's."""
    try:
        for file in metadata.files(PROGRAM) or ():
            if (
                file.stem == PROGRAM
                and file.suffix in ("", ".exe")
                and Path(file.locate()).is_file()
            ):
                return str(file.locate())
    except metadata.PackageNotFoundError:
        pass
    found = shutil.which(PROGRAM)
    if not found:
        raise DF11Error(f"the program {PROGRAM} isn't installed: pip install {PROGRAM}")
    return found


class Stream:
    """The weights of a file's units, in the order of their paths. A context manager."""

    def __init__(self, file: Path):
        self.file = file

    def __enter__(self) -> "Stream":
        # a pipe would fill up, because nothing reads it before the end
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program(), "weights", str(self.file)],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            bufsize=0,
        )
        return self

    def read(self, target: torch.Tensor) -> None:
        """Fills a tensor with the next weights."""
        weights = target
        if (
            target.dtype != torch.bfloat16
            or target.device.type != "cpu"
            or not target.is_contiguous()
        ):
            weights = torch.empty(target.shape, dtype=torch.bfloat16)
        flat = memoryview(
            (ctypes.c_char * (2 * weights.numel())).from_address(weights.data_ptr())
        ).cast("B")
        done = 0
        while done < len(flat):
            n = self.process.stdout.readinto(flat[done:])
            if not n:
                raise self.failure()
            done += n
        if weights is not target:
            target.copy_(weights)

    def skip(self, n: int) -> None:
        if n > 0:
            self.read(torch.empty(n, dtype=torch.bfloat16))

    def failure(self) -> DF11Error:
        self.process.stdout.close()  # ends a program that has more to say
        self.process.wait()
        self.errors.seek(0)
        text = self.errors.read(1 << 16).decode(errors="replace")
        text = "; ".join(text.strip().splitlines())
        return DF11Error(
            text.replace(f"{PROGRAM}: ", "", 1)
            or f"{self.file}: its units don't hold what its headers say"
        )

    def __exit__(self, kind, *_) -> None:
        try:
            if kind:
                self.process.kill()
            elif self.process.stdout.read(1) or self.process.wait():
                raise self.failure()
        finally:
            self.process.stdout.close()
            self.process.wait()
            self.errors.close()
