"""Our CUDA kernel, through the driver's own interface: no CUDA toolkit, no compiler, no other
package.

It runs in torch's context and stream. decode.ptx is described in the program's verify/kernel.
"""

import ctypes
import functools
import os
import sys
from pathlib import Path
from typing import NamedTuple, Optional

import torch

from .files import CHUNK_GAPS, DF11Error, Unit, chunks

THREADS = 512
TABLE_BYTES = 4352  # what build_tables writes
TABLE_SHARED = 1024  # bytes of shared memory of build_tables
TILE_SHARED = 256 + TABLE_BYTES + 32  # of decode_tiles, and a byte for each weight of a chunk
SLACK = 16  # bytes that must be readable after gaps
TAIL = 4  # and after the coded stream: its last code may reach into them
ROUNDS = 4  # blocks of decode_tiles that run one after the other in each place of the device
ALIGN = 256
TARGET = 70  # lowest compute capability, times 10
# For tests: a library that stands in for the driver, and decodes in the host's memory.
STAND_IN = os.environ.get("DF11_TEST_DRIVER")


class Layout(NamedTuple):
    """Where the arrays of a unit lie in one block of bytes. Its tables come first."""

    luts: int
    stream: int
    gaps: int
    positions: int
    sign_mantissa: int
    size: int
    n_luts: int
    n_stream: int
    n_weights: int
    n_chunks: int


def layout_of(unit: Unit) -> Layout:
    n_luts, n_stream = unit.arrays["luts"].shape[0], unit.arrays["encoded_exponent"].shape[0]
    n_chunks, at, places = chunks(n_stream), align(TABLE_BYTES), []
    for room in (
        256 * n_luts,
        n_stream + TAIL,
        CHUNK_GAPS * n_chunks + SLACK,
        4 * n_chunks + 4,
        unit.n_weights,
    ):
        places.append(at)
        at += align(room)
    return Layout(*places, at, n_luts, n_stream, unit.n_weights, n_chunks)


def pack(unit: Unit, layout: Layout, device: torch.device, pin: bool = False) -> torch.Tensor:
    """Reads a unit into one block of bytes."""
    arrays = unit.read()
    packed = torch.zeros(layout.size, dtype=torch.uint8, device=device, pin_memory=pin)
    end = torch.tensor([unit.n_weights], dtype=torch.int32).view(torch.uint8)
    starts = torch.cat([arrays["output_positions"], end])  # its last entry may be missing
    for at, array in (
        (layout.luts, arrays["luts"].reshape(-1)),
        (layout.stream, arrays["encoded_exponent"]),
        (layout.gaps, arrays["gaps"]),
        (layout.positions, starts[: 4 * layout.n_chunks + 4]),
        (layout.sign_mantissa, arrays["sign_mantissa"]),
    ):
        packed[at : at + array.numel()].copy_(array)
    return packed


def positions(packed: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Returns the first weight of each chunk, and the number of weights."""
    return packed[layout.positions : layout.positions + 4 * layout.n_chunks + 4].view(torch.int32)


def widest(packed: torch.Tensor, layout: Layout) -> int:
    """Returns how many weights the chunk with the most weights has."""
    return int(positions(packed, layout).diff().max())


def align(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


class Driver:
    """The driver's library."""

    def __init__(self, path: str):
        self.library = ctypes.CDLL(path)
        p, i, u = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
        for name, *types in (
            ("cuInit", u),
            ("cuGetErrorName", i, p),
            ("cuDeviceGet", p, i),
            ("cuDeviceGetAttribute", p, i, i),
            ("cuDevicePrimaryCtxRetain", p, i),
            ("cuCtxPushCurrent_v2", p),
            ("cuCtxPopCurrent_v2", p),
            ("cuModuleLoadData", p, ctypes.c_char_p),
            ("cuModuleGetFunction", p, p, ctypes.c_char_p),
            ("cuFuncSetAttribute", p, i, i),
            ("cuOccupancyMaxActiveBlocksPerMultiprocessor", p, p, i, ctypes.c_size_t),
            ("cuLaunchKernel", p, u, u, u, u, u, u, u, p, p, p),
        ):
            getattr(self.library, name).argtypes = types
        self.call("cuInit", 0)

    def call(self, name: str, *args) -> None:
        code = getattr(self.library, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise DF11Error(f"{name}: {(text.value or b'').decode() or code}")

    def number(self, name: str, *args) -> int:
        """Calls a function that returns a number through its first argument."""
        n = ctypes.c_int()
        self.call(name, ctypes.byref(n), *args)
        return n.value

    def handle(self, name: str, *args) -> ctypes.c_void_p:
        """Calls a function that returns a handle through its first argument."""
        h = ctypes.c_void_p()
        self.call(name, ctypes.byref(h), *args)
        return h


@functools.cache
def driver() -> Driver:
    names = {"win32": ["nvcuda.dll"]}.get(sys.platform, ["libcuda.so.1", "libcuda.so"])
    for name in [STAND_IN] if STAND_IN else names:
        try:
            return Driver(name)
        except (OSError, AttributeError) as e:  # an old driver lacks functions
            error = e
    raise DF11Error(f"no CUDA driver: {error}")


class Device:
    """A GPU with the kernel loaded."""

    def __init__(self, index: int):
        self.driver = d = driver()
        ordinal = d.number("cuDeviceGet", index)
        self.index = index
        major, minor = (d.number("cuDeviceGetAttribute", a, ordinal) for a in (75, 76))
        if 10 * major + minor < TARGET:
            raise DF11Error(f"the GPU has compute capability {major}.{minor}, the kernel needs 7.0")
        self.processors = d.number("cuDeviceGetAttribute", 16, ordinal)
        self.context = d.handle("cuDevicePrimaryCtxRetain", ordinal)
        with self:
            module = d.handle(
                "cuModuleLoadData", (Path(__file__).parent / "decode.ptx").read_bytes()
            )
            self.build_tables = d.handle("cuModuleGetFunction", module, b"build_tables")
            self.decode_tiles = d.handle("cuModuleGetFunction", module, b"decode_tiles")
            self.decode_picked = d.handle("cuModuleGetFunction", module, b"decode_picked")
            for function in (self.decode_tiles, self.decode_picked):
                d.call("cuFuncSetAttribute", function, 9, 100)  # prefer shared memory to cache

    def __enter__(self):
        self.driver.call("cuCtxPushCurrent_v2", self.context)

    def __exit__(self, *_):
        self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def blocks(self, layout: Layout, shared: int) -> int:
        """Returns how many blocks decode a unit, each with so many bytes of shared memory."""
        with self:
            each = self.driver.number(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor", self.decode_tiles, THREADS, shared
            )
        return min(layout.n_chunks, ROUNDS * self.processors * max(1, each))

    def stream(self) -> int:
        return 0 if STAND_IN else torch.cuda.current_stream(self.index).cuda_stream

    def launch(self, function, blocks: int, shared: int, args: "Arguments") -> None:
        self.driver.call(
            "cuLaunchKernel",
            function,
            blocks,
            1,
            1,
            THREADS,
            1,
            1,
            shared,
            self.stream(),
            args.pointers,
            None,
        )


class Arguments:
    """The arguments of a launch, in memory that stays in place."""

    def __init__(self, *values: int):
        self.values = [ctypes.c_uint64(v) for v in values]
        self.pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in self.values))


class Launch:
    """A unit that is ready to be decoded: its block of bytes on the device, and where its weights
    go.
    """

    def __init__(
        self, device: Device, packed: torch.Tensor, layout: Layout, widest: int, out: torch.Tensor
    ):
        at = packed.data_ptr()
        self.device = device
        self.tables = Arguments(at + layout.luts, layout.n_luts, at)
        self.tiles = Arguments(
            at + layout.luts,
            at + layout.stream,
            at + layout.sign_mantissa,
            at + layout.positions,
            at + layout.gaps,
            out.data_ptr(),
            layout.n_luts,
            layout.n_stream,
            layout.n_weights,
            at,
            layout.n_chunks,
        )
        self.shared = TILE_SHARED + widest
        self.blocks = device.blocks(layout, self.shared)

    def build(self) -> None:
        """Enqueues building the tables, once, in the first bytes of the block."""
        with self.device:
            self.device.launch(self.device.build_tables, 1, TABLE_SHARED, self.tables)

    def picked(self, owners: torch.Tensor, mask: torch.Tensor) -> Arguments:
        """Returns the arguments that decode only the chunks of which mask has an owner; both must
        stay in place.
        """
        return Arguments(*(v.value for v in self.tiles.values), owners.data_ptr(), mask.data_ptr())

    def decode(self, picked: Optional[Arguments] = None) -> None:
        """Enqueues decoding, of all or of what is picked; the caller has made the device's context
        current.
        """
        function = self.device.decode_picked if picked else self.device.decode_tiles
        self.device.launch(function, self.blocks, self.shared, picked or self.tiles)


@functools.cache
def open_device(index: int) -> Device:
    return Device(index)


def device_of(device: torch.device) -> Device:
    """Returns the kernel on a torch device; a DF11Error says why it can't run there."""
    if STAND_IN:
        return open_device(0)
    if device.type != "cuda" or torch.version.hip:
        raise DF11Error(f"{'ROCm' if torch.version.hip else device.type} isn't CUDA")
    torch.cuda.init()
    return open_device(torch.cuda.current_device() if device.index is None else device.index)


def decode(unit: Unit, device: torch.device) -> torch.Tensor:
    """Decodes a unit on a device, for weights that stay decoded."""
    layout = layout_of(unit)
    packed = pack(unit, layout, device)
    out = torch.empty(unit.n_weights, dtype=torch.bfloat16, device=device)
    launch = Launch(device_of(device), packed, layout, widest(packed, layout), out)
    launch.build()
    with launch.device:
        launch.decode()
    synchronize(device)  # the block of bytes is freed now
    return out


def synchronize(device: torch.device) -> None:
    if not STAND_IN:
        torch.cuda.current_stream(device).synchronize()
