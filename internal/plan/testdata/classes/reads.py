"""Lists the weights that the classes of transformers and diffusers read outside of the module that holds them.

    v/bin/python reads.py > reads-4.57.6.txt
    LC_ALL=C sort -u reads-*.txt > ../../../catalog/reads.txt

    v/bin/python reads.py fills > fills-4.57.6.txt
    LC_ALL=C sort -u fills-*.txt > ../../../catalog/fills.txt

where v is the environment of classes.py. The official loader takes the weight of a unit away and restores it whenever
the unit is called, so such a read fails, or finds another unit's numbers. Every model class is built on torch_stub, small;
the source of each of its modules' methods is searched for ".weight", and what stands before it is followed on the built
model: attributes, items of containers, loops, local names, getters.

Each line is `class weight reader method`: the module whose weight is read, the module whose method reads it ("." is the
model itself), and the method. A line that begins with ? is a read that can't be followed, or is in a class that no model
could be built of. Left out are methods that run before weights are loaded or only when somebody asks for them (BEFORE),
and what happens only after model.parallelize().

With fills, it lists the 2-D weights that are no Linear's, and the lists of modules: `class module kind`, the module and its own
class. The official loader fills an Embedding only as a unit of its own, and leaves any other module that a pattern matches as it
is, without a word. Nothing calls a list, so a unit that is a list never gets its weights.
"""
import ast
import contextlib
import functools
import inspect
import logging
import pathlib
import re
import sys
import warnings

from classes import ARGUMENTS, shrink
import torch_stub
import diffusers
import transformers

MODULE = torch_stub.Module

BEFORE = re.compile(r"__init__|_*(init|reset|load|convert|tie|resize|get_resized|copy|set|prune|fuse|unfuse|quantize|save|"
                    r"parallelize|deparallelize|freeze|from_pretrained|register|apply_weight_norm|remove_weight_norm)(_.*|$)|post_init")


seen = set()  # file and name of every class whose methods were searched


@functools.cache
def tree(file):
    with open(file) as f:
        return {n.name: n for n in ast.parse(f.read()).body if isinstance(n, ast.ClassDef)}


def methods(cls):
    """Yields the methods of a class as they are called: name, defining class, syntax."""
    hidden = set()
    for c in cls.__mro__:
        if not c.__module__.startswith(("transformers.models.", "diffusers.")):
            continue
        try:
            file = inspect.getsourcefile(c)
            body = tree(file)[c.__name__].body
        except (TypeError, KeyError, OSError):
            continue
        seen.add((file, c.__name__))
        for f in body:
            if isinstance(f, ast.FunctionDef) and f.name not in hidden and not BEFORE.match(f.name):
                if "super()" not in ast.unparse(f):
                    hidden.add(f.name)
                yield f.name, c, f


class Follower:
    """Follows expressions of one method on a built module."""

    def __init__(self, module, function):
        self.names = {"self": [module]}
        for _ in range(2):  # a loop may use a name that is set further down
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    self.bind(node.targets[0], self.follow(node.value))
                elif isinstance(node, (ast.For, ast.comprehension)):
                    self.loop(node.target, node.iter)

    def bind(self, target, modules):
        if isinstance(target, ast.Name) and modules:
            known = self.names.setdefault(target.id, [])
            known += [m for m in modules if not any(m is k for k in known)]

    def loop(self, target, iterable):
        calls = isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name)
        if calls and iterable.func.id == "enumerate" and isinstance(target, ast.Tuple):
            return self.loop(target.elts[1], iterable.args[0])
        if calls and iterable.func.id == "zip" and isinstance(target, ast.Tuple):
            for t, i in zip(target.elts, iterable.args):
                self.loop(t, i)
            return
        self.bind(target, self.items(self.follow(iterable)))

    @staticmethod
    def items(containers):
        return [c for m in containers for c in m._modules.values() if c is not None]

    def follow(self, node):
        """Returns the modules that an expression may stand for."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, [])
        if isinstance(node, ast.Attribute):
            found = [m._modules.get(node.attr) or vars(type(m)).get(node.attr) for m in self.follow(node.value)]
            return [m for m in found if isinstance(m, MODULE)]
        if isinstance(node, ast.Subscript):
            containers = self.follow(node.value)
            return containers if isinstance(node.slice, ast.Slice) else self.items(containers)
        if isinstance(node, ast.IfExp):
            return self.follow(node.body) + self.follow(node.orelse)
        if isinstance(node, ast.BoolOp):
            return [m for v in node.values for m in self.follow(v)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            return self.call(node.func)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and isinstance(node.args[1], ast.Constant):
            return self.follow(ast.Attribute(node.args[0], node.args[1].value, ast.Load()))
        return []

    def call(self, function):
        """Calls a getter without arguments, as get_input_embeddings."""
        found = []
        for m in self.follow(function.value):
            if function.attr in ("children", "modules", "values"):
                found.append(m)
            elif function.attr.startswith("get_"):
                try:
                    found.append(getattr(m, function.attr)())
                except Exception:
                    continue
        return [m for m in found if isinstance(m, MODULE)]


def weights_read(function):
    """Yields what stands before every .weight that is read, but for what happens only after parallelize()."""
    skip = {id(n) for i in ast.walk(function) if isinstance(i, ast.If) and "model_parallel" in ast.unparse(i.test) for n in ast.walk(i)}
    for node in ast.walk(function):
        if id(node) in skip:
            continue
        if isinstance(node, ast.Attribute) and node.attr == "weight" and isinstance(node.ctx, ast.Load):
            base = node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and ast.unparse(node.args[1]) == "'weight'":
            base = node.args[0]
        else:
            continue
        if ast.unparse(base) != "self":
            yield base


@functools.cache
def reads_of(cls):
    return [(f"{c.__name__}.{name}", f, list(weights_read(f))) for name, c, f in methods(cls) if "weight" in ast.unparse(f)]


def reads(model, followed):
    """Yields weight, reader and method of every read in a built model, and notes which reads could be followed."""
    paths = {id(m): p for p, m in model.named_modules()}
    for reader, module in model.named_modules():
        for method, function, bases in reads_of(type(module)):
            follower = Follower(module, function) if bases else None
            for base in bases:
                found = follower.follow(base)
                read = f"{method} {ast.unparse(base)}.weight"
                followed[read] = followed.get(read, False) or bool(found)
                for m in found:
                    weight = m._parameters.get("weight")
                    if m is not module and weight is not None and len(weight.shape) == 2 and id(m) in paths:
                        yield paths[id(m)], reader or ".", method


def classes():
    """Yields name and builder of every model class."""
    for library, base in (transformers, "PreTrainedModel"), (diffusers, "ModelMixin"):
        for name in sorted(dir(library)):
            try:
                cls = getattr(library, name)
            except Exception as e:  # a module that needs more than torch_stub is
                print(f"{name}: {e}", file=sys.stderr)
                continue
            if not isinstance(cls, type) or not issubclass(cls, getattr(library, base)):
                continue
            if library is diffusers:
                yield name, functools.partial(cls, **ARGUMENTS.get(name, {}))
            elif getattr(cls, "config_class", None):
                yield name, lambda cls=cls: cls(shrink(cls.config_class()))


def unseen():
    """Yields the reads of classes that no model was built of, as they stand in the source."""
    for library in transformers, diffusers:
        for file in sorted((pathlib.Path(library.__file__).parent / "models").rglob("*.py")):
            if file.name.startswith(("modular_", "convert_")) or "_tf_" in file.name or "_flax_" in file.name:
                continue
            for name, c in tree(str(file)).items():
                if (str(file), name) in seen:
                    continue
                for f in c.body:
                    if isinstance(f, ast.FunctionDef) and not BEFORE.match(f.name):
                        for base in weights_read(f):
                            yield f"{name}.{f.name} {ast.unparse(base)}.weight"


def scan():
    """Yields the lines of reads.txt, in no order."""
    followed = {}
    for name, build in classes():
        try:
            model = build()
        except Exception as e:  # its defaults do not fit each other, or it needs another library
            print(f"{name}: not built: {str(e).strip()[:100]!r}", file=sys.stderr)
            continue
        for weight, reader, method in reads(model, followed):
            yield f"{name} {indices(weight)} {indices(reader)} {method}"
    for read in [*(r for r, ok in followed.items() if not ok), *unseen()]:
        yield f"? {read}"


def scan_fills():
    """Yields the lines of fills.txt, in no order."""
    nn = sys.modules["torch.nn"]
    for name, build in classes():
        try:
            modules = list(build().named_modules())
        except Exception as e:
            print(f"{name}: not built: {str(e).strip()[:100]!r}", file=sys.stderr)
            continue
        for path, module in modules:
            weight = module._parameters.get("weight")
            if isinstance(module, (nn.ModuleList, nn.ModuleDict)) and not isinstance(module, nn.Sequential):
                yield f"{name} {indices(path)} ModuleList"
            elif weight is not None and len(weight.shape) == 2 and not isinstance(module, nn.Linear):
                kind = "Embedding" if isinstance(module, nn.Embedding) else type(module).__name__
                yield f"{name} {indices(path)} {kind}"


def indices(path):
    return re.sub(r"(^|\.)\d+(?=\.|$)", r"\1#", path)


def main():
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    transformers.PreTrainedModel.post_init = transformers.PreTrainedModel.init_weights = lambda self: None
    with contextlib.redirect_stdout(sys.stderr):
        lines = sorted(set(scan_fills() if sys.argv[1:] == ["fills"] else scan()))
    print(*lines, sep="\n")


main()
