"""A DF11 model's files: what they hold, and whether the parts of each unit fit each other.

A unit is a module, or a parameter, that is compressed as a whole (docs/format.md). Nothing here
knows a model class.
"""

import contextlib
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open

from .patterns import Pattern

ARRAYS = (
    "luts",
    "encoded_exponent",
    "sign_mantissa",
    "output_positions",
    "gaps",
    "split_positions",
)
PARAMETERS = "0.5.0+parameters"  # docs/format.md §17: the version of models with parameters
CONSTANTS = {"threads_per_block": [512], "bytes_per_thread": 8}  # the official loader needs them
MEMBERS = {"version", "pattern_dict", *CONSTANTS}
MANIFEST = "df11-manifest.json"

CHUNK_BYTES = 4096  # docs/format.md §1
CHUNK_GAPS = 320  # docs/format.md §7: bytes of gaps per chunk
MAX_ROWS = 18  # docs/format.md §9: rows of luts
MAX_CHUNK_WEIGHTS = 23550  # docs/format.md §9
MAX_WEIGHTS = 2**31 - 1  # docs/format.md §9
MAX_STREAM = 2**31 - 8192  # docs/format.md §9
MAX_SYMBOL = 239  # docs/format.md §6: values above are jumps
MAX_CODE_BITS = 32  # docs/format.md §5


def printable(text: object) -> str:
    """Returns a text with escapes for what a terminal or a log acts on, such as control characters
    in names.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


# What no file system may take for a file elsewhere, for another file, or for a device: the rule of
# df11-convert (internal/names, IsSafe), for which internal/names/testdata/paths.json has cases.
IGNORED = "\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff"  # by HFS+, as Git lists it in its utf8.c
UNSAFE = re.compile(rf'[\x00-\x1f\x7f-\x9f\ud800-\udfff\\:*?"<>|{IGNORED}]')
OTHER_NAME = re.compile(
    r"^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)|[. ]$|^(\.git|git~[0-9]+)$"
)


def is_safe(path: str) -> bool:
    """Reports whether a path stays in its folder, and means one file on every system."""
    parts = path.split("/")
    return not (
        UNSAFE.search(path)
        or len(path.encode()) > 4096
        or any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts)
        or any(OTHER_NAME.search(part.upper().lower().casefold()) for part in parts)
    )


class DF11Error(Exception):
    """A model can't be loaded, or can't do what was asked of it.

    The text names the thing, and is printable.
    """

    def __init__(self, text: str):
        super().__init__(printable(text))


def make_printable(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), None
    return True


log = logging.getLogger("df11")
log.addFilter(make_printable)


class Stored(NamedTuple):
    """A tensor of a file, not yet read."""

    name: str
    file: Path
    dtype: str  # as safetensors spells it, such as BF16
    shape: tuple[int, ...]

    def read(self) -> torch.Tensor:
        with torch.device("cpu"), safe_open(self.file, "pt") as f:  # whatever the default is
            return f.get_tensor(self.name)


class Unit(NamedTuple):
    """A unit, whose stored arrays fit each other by their sizes."""

    path: str
    file: Path
    attributes: tuple[str, ...]  # of the pattern dict
    arrays: dict[str, Stored]
    sizes: tuple[int, ...]  # weights of each attribute

    @property
    def n_weights(self) -> int:
        return sum(self.sizes)

    def read(self) -> dict[str, torch.Tensor]:
        """Reads the arrays and checks what a decoder relies on."""
        with torch.device("cpu"), safe_open(self.file, "pt") as f:
            arrays = {name: f.get_tensor(stored.name) for name, stored in self.arrays.items()}
        positions = arrays["output_positions"].view(torch.int32).to(torch.int64)
        n_chunks = chunks(arrays["encoded_exponent"].numel())
        if len(positions) == n_chunks:  # docs/format.md §7: the last entry may be missing
            positions = torch.cat([positions, torch.tensor([self.n_weights], device="cpu")])
        steps = positions.diff()
        if positions[0] != 0 or positions[-1] != self.n_weights or bool((steps < 0).any()):
            raise DF11Error(
                f"{self.path}.output_positions: not the positions of {self.n_weights} weights"
            )
        if int(steps.max()) > MAX_CHUNK_WEIGHTS:
            raise DF11Error(f"{self.path}.output_positions: {int(steps.max())} weights in a chunk")
        check_luts(self.path, arrays["luts"])
        return arrays


class Files(NamedTuple):
    """What the files of a model hold."""

    folder: Path
    config: dict
    plain: dict[str, Stored]  # tensors that aren't compressed
    units: dict[str, Unit]
    # whether units may fill parameters of other names than weight (docs/format.md §17)
    parameters: bool

    def n_bytes(self) -> int:
        """Returns the size of the files."""
        files = {t.file for t in self.plain.values()} | {u.file for u in self.units.values()}
        return sum(file.stat().st_size for file in files)


def chunks(n_bytes: int) -> int:
    return -(-n_bytes // CHUNK_BYTES)


def check_luts(path: str, luts: torch.Tensor) -> None:
    """Checks the tables as a decoder walks them, except for slots that no code leads to."""
    rows = luts.tolist()
    tables, lengths = rows[:-1], rows[-1]

    def walk(i: int, depth: int) -> None:
        leak = tables[i - 1][-1] if i > 0 else None  # docs/format.md §6: the leak rule
        leaking = i > 0
        for value in tables[i]:
            leaking = leaking and value == leak
            if leaking:
                continue
            if value > MAX_SYMBOL:
                if 256 - value >= len(tables) or depth == 3:
                    raise DF11Error(
                        f"{path}.luts: a jump to table {256 - value} at level {depth + 1}"
                    )
                if (256 - value, depth + 1) not in seen:
                    seen.add((256 - value, depth + 1))
                    walk(256 - value, depth + 1)
            elif not 8 * depth < lengths[value] <= 8 * depth + 8:
                raise DF11Error(
                    f"{path}.luts: symbol {value} at level {depth + 1} has {lengths[value]} bits"
                )

    seen = {(0, 0)}
    walk(0, 0)


def read(folder: Path) -> Files:
    """Reads the headers of all .safetensors files of a folder, and the dict of its config.json."""
    config = read_config(folder)
    patterns, parameters = pattern_dict(config["dfloat11_config"], folder)
    tensors: dict[str, Stored] = {}
    for file in sorted(folder.iterdir()):
        if file.suffix != ".safetensors":
            continue
        if not file.is_file():
            raise DF11Error(f"{file} isn't a file")
        for stored in headers(file):
            if stored.name in tensors:
                raise DF11Error(
                    f"{stored.name} is in {tensors[stored.name].file.name} and in {file.name}"
                )
            tensors[stored.name] = stored
    units = {}
    for name in sorted(n for n in tensors if n.endswith(".encoded_exponent")):
        path = name[: -len(".encoded_exponent")]
        units[path] = unit(path, patterns, tensors)
    if not units:
        raise DF11Error(f"{folder}: no compressed module in its .safetensors files")
    stray = [
        n
        for n in tensors
        if n.rpartition(".")[2] in set(ARRAYS) - {"gaps"} and tensors[n].dtype in ("U8", "I64")
    ]
    if stray:
        raise DF11Error(f"{stray[0]} belongs to a unit without encoded_exponent")
    return Files(folder, config, tensors, units, parameters)


def read_object(file: Path) -> dict:
    """Reads a JSON object."""
    names: list[str] = []  # of the outermost object, which ends last

    def members(pairs: list[tuple[str, object]]) -> dict:
        names[:] = [name for name, _ in pairs]
        return dict(pairs)

    with reading(file):
        value = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=members)
        if not isinstance(value, dict):
            raise DF11Error(f"{file} holds no JSON object")
    if names.count("dfloat11_config") > 1:
        raise DF11Error(f"{file}: dfloat11_config appears twice")
    return value


@contextlib.contextmanager
def reading(what: object) -> Iterator[None]:
    """Turns whatever goes wrong with a model's own files into a DF11Error.

    Memory and packages aren't theirs.
    """
    try:
        yield
    except (DF11Error, ImportError, MemoryError, torch.OutOfMemoryError):
        raise
    except RecursionError:
        raise DF11Error(f"{what} is nested too deep") from None
    except Exception as e:
        raise DF11Error(f"{what} can't be read: {type(e).__name__}: {e}") from e


def read_config(folder: Path) -> dict:
    """Reads the config.json of a DF11 model."""
    if not (folder / "config.json").is_file():
        pipeline = is_pipeline(folder)
        raise DF11Error(
            f"{folder}: no config.json"
            + ("; df11.load_pipeline loads pipelines" if pipeline else "")
        )
    config = read_object(folder / "config.json")
    check_case(config, ["dfloat11_config"], f"{folder}: config.json")
    if not isinstance(config.get("dfloat11_config"), dict):
        above = folder.parent
        beside = is_pipeline(above) and (above / "config.json").is_file()
        if beside and "dfloat11_config" in read_object(above / "config.json"):
            raise DF11Error(
                f"{folder}: its weights are in the folder above: load that one, without subfolder"
            )
        raise DF11Error(
            f"{folder}: config.json has no dfloat11_config, so this isn't a DF11 model; "
            "df11-convert makes one of it"
        )
    return config


def is_pipeline(folder: Path) -> bool:
    return (folder / "model_index.json").is_file()


def manifest(folder: Path, key: str) -> tuple[Path, list[dict]]:
    """Returns a list of the manifest, and the folder where it lies: the model's, or the one above if
    its manifest lists files of this one, as that of a pipeline does.
    """
    for top in (folder, folder.parent):
        if not (top / MANIFEST).is_file():
            continue
        stated = read_object(top / MANIFEST)
        paths = [str(f.get("path")) for f in objects(stated.get("files"))]
        for path in paths:
            if not is_safe(path):
                raise DF11Error(f"{top / MANIFEST}: {path!r} isn't the path of a file of the model")
        if top == folder or any(path.startswith(f"{folder.name}/") for path in paths):
            return top, objects(stated.get(key))
    return folder, []


def objects(value: object) -> list[dict]:
    return [x for x in value if isinstance(x, dict)] if isinstance(value, list) else []


def check_sizes(folder: Path) -> None:
    """Compares the size of each .safetensors file with the manifest's, if there is one."""
    top, listed = manifest(folder, "files")
    for f in listed:
        file, size = top / str(f.get("path")), f.get("size")
        if file.parent == folder and file.suffix == ".safetensors" and file.is_file():
            if file.stat().st_size != size:
                raise DF11Error(
                    f"{file} has {file.stat().st_size} bytes, and {MANIFEST} lists {size}: it's "
                    "damaged, or another model's"
                )


def check_hashes(folder: Path) -> None:
    """Compares the hash of each .safetensors file, of each config, and of what the manifest lists in
    the folder, except for the card, with the Hub's, by which its cache names the file, or else the
    manifest's.
    """
    top, listed = manifest(folder, "files")
    stated = {
        top / str(f.get("path")): f.get("sha256")
        for f in listed
        if f.get("kind") not in ("card", "image")
    }

    def check(file: Path) -> None:
        blob = file.resolve()
        cached = blob.parent.name == "blobs" and re.fullmatch("[0-9a-f]{40}([0-9a-f]{24})?", blob.name)
        want = str(blob.name if cached else stated.get(file, ""))
        if not want:
            raise DF11Error(
                f"{file}: nothing says its sha256; df11-convert verify compares it with the "
                "original"
            )
        name, of = ("git hash", git_hash) if len(want) == 40 else ("sha256", sha256)
        if of(file) != want:
            raise DF11Error(f"{file} is damaged: its {name} isn't {want}")

    files = {*folder.glob("*.safetensors"), *folder.glob("*config*.json")}
    files |= {file for file in stated if folder in file.parents and file.is_file()}
    with ThreadPoolExecutor() as pool:
        list(pool.map(check, sorted(files)))


def git_hash(file: Path) -> str:
    """Returns the hash by which git, and so the Hub's cache, names a small file."""
    data = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(file: Path) -> str:
    digest, buffer = hashlib.sha256(), bytearray(2**20)
    with file.open("rb") as f:
        for n in iter(lambda: f.readinto(buffer), 0):
            digest.update(memoryview(buffer)[:n])
    return digest.hexdigest()


def headers(file: Path) -> Iterator[Stored]:
    """Yields the tensors of a file."""
    try:
        with safe_open(file, "pt") as f:
            for name in f.keys():
                part = f.get_slice(name)
                yield Stored(name, file, str(part.get_dtype()), tuple(part.get_shape()))
    except (SafetensorError, OSError) as e:
        raise DF11Error(f"{file}: {e}") from e


Patterns = list[tuple[Pattern, list[str]]]  # with their attributes


def pattern_dict(stated: dict, folder: Path) -> tuple[Patterns, bool]:
    """Checks a dfloat11_config and returns its patterns, and whether units may fill parameters of
    other names than weight.
    """
    check_case(stated, MEMBERS, f"{folder}: dfloat11_config")
    version, _, extensions = str(stated.get("version")).partition("+")
    if not re.fullmatch(r"0\.[2-5]\.[0-9]+", version):
        raise DF11Error(
            f"{folder}: format {stated.get('version')!r} is unknown; this reads 0.2 to 0.5"
        )
    if extensions and stated["version"] != PARAMETERS:
        raise DF11Error(f"{folder}: the format's extension in {stated['version']!r} is unknown")
    if extensions and CONSTANTS.keys() & stated.keys():
        raise DF11Error(
            f"{folder}: with format {stated['version']}, dfloat11_config must not have "
            "threads_per_block and bytes_per_thread"
        )
    for name, value in CONSTANTS.items():
        # 512.0 would be equal, and is no number of threads
        if not extensions and json.dumps(stated.get(name)) != json.dumps(value):
            found = repr(stated[name]) if name in stated else "missing"
            raise DF11Error(f"{folder}: {name} of dfloat11_config is {found}, not {value}")
    patterns = stated.get("pattern_dict")
    if not isinstance(patterns, dict) or not all(
        isinstance(v, (list, tuple)) and all(isinstance(a, str) for a in v)
        for v in patterns.values()
    ):
        raise DF11Error(f"{folder}: dfloat11_config has no pattern_dict of lists of names")
    compiled: Patterns = []
    for p, attributes in patterns.items():
        try:
            compiled.append((Pattern(p), attributes))
        except ValueError as e:
            raise DF11Error(f"{folder}: the pattern {p!r}: {e}") from e
    return compiled, bool(extensions)


def check_case(members: dict, names: Iterable[str], of: str) -> None:
    """Refuses members whose names differ from the given ones only in case: programs may disagree
    which one counts.
    """
    for member in members:
        if member not in names and member.casefold() in names:
            raise DF11Error(f"{of} has {member!r}, which differs from a known name only in case")


def unit(path: str, patterns: Patterns, tensors: dict[str, Stored]) -> Unit:
    """Takes the arrays of a unit out of tensors, and checks their types and sizes."""
    if not re.fullmatch(r"\w+(\.\w+)*", path):
        raise DF11Error(f"{path!r} isn't the path of a module")
    matching = [attributes for p, attributes in patterns if p.matches(path)]
    if len(matching) != 1:
        raise DF11Error(f"{path}: {len(matching)} patterns of the pattern_dict match this unit")
    arrays = {}
    for array in ARRAYS:
        stored = tensors.pop(f"{path}.{array}", None)
        if stored is None:
            raise DF11Error(f"{path}.{array} is missing")
        if stored.dtype != ("I64" if array == "split_positions" else "U8"):
            raise DF11Error(f"{path}.{array} is {stored.dtype}")
        if len(stored.shape) != (2 if array == "luts" else 1):
            raise DF11Error(f"{path}.{array} has the shape {list(stored.shape)}")
        arrays[array] = stored
    size = {array: stored.shape[0] for array, stored in arrays.items()}
    n, n_chunks = size["sign_mantissa"], chunks(size["encoded_exponent"])
    if not 0 < n <= MAX_WEIGHTS or not 0 < size["encoded_exponent"] <= MAX_STREAM:
        raise DF11Error(f"{path}: {n} weights in {size['encoded_exponent']} bytes")
    if not 2 <= size["luts"] <= MAX_ROWS or arrays["luts"].shape[1] != 256:
        raise DF11Error(f"{path}.luts has the shape {list(arrays['luts'].shape)}")
    if size["gaps"] != CHUNK_GAPS * n_chunks:
        raise DF11Error(f"{path}.gaps has {size['gaps']} bytes, not {CHUNK_GAPS * n_chunks}")
    if size["output_positions"] not in (4 * n_chunks, 4 * n_chunks + 4):
        raise DF11Error(
            f"{path}.output_positions has {size['output_positions']} bytes for {n_chunks} chunks"
        )
    ends = [*arrays["split_positions"].read().tolist(), n]
    sizes = tuple(end - start for start, end in zip([0, *ends], ends))
    if min(sizes) < 0:
        raise DF11Error(f"{path}.split_positions: {ends[:-1]} don't split {n} weights")
    return Unit(path, arrays["luts"].file, tuple(matching[0]), arrays, sizes)
