"""A stand-in for torch that knows no numbers, only which modules and parameters a model has.

import torch_stub puts it in place of torch. Modules keep their parameters with shapes, as torch does; everything else
(operators, dtypes, devices, decorators, kernels) is a Dummy that accepts whatever is done to it. So model classes of
transformers and diffusers can be built at full size, in milliseconds and without torch.
"""
import importlib.abc
import importlib.machinery
import importlib.metadata
import math
import sys
import types

VERSION = "2.7.0"


def dunder(name):
    return name.startswith("__") and name.endswith("__")


class DummyType(type):
    """The type of Dummy and of all classes that are made up on demand."""

    def __getattr__(cls, name):
        if dunder(name):
            raise AttributeError(name)
        return Dummy()

    def __or__(cls, other):
        return object

    __ror__ = __or__

    def __getitem__(cls, item):
        return cls


class Dummy(metaclass=DummyType):
    """Takes every call, attribute and operator; used as a decorator it changes nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
            return args[0]
        return Dummy()

    def __getattr__(self, name):
        if dunder(name):
            raise AttributeError(name)
        return Dummy()

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __getitem__(self, index):
        return Dummy()

    def __setitem__(self, index, value):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __bool__(self):
        return False

    def __int__(self):
        return 0

    __index__ = __int__

    def __float__(self):
        return 0.0

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __contains__ = __lt__


def operator(self, *args):
    return Tensor(*self.shape) if isinstance(self, Tensor) else Dummy()


for op in "add sub mul truediv floordiv pow mod matmul and or xor lshift rshift".split():
    setattr(Dummy, f"__{op}__", operator)
    setattr(Dummy, f"__r{op}__", operator)
Dummy.__neg__ = Dummy.__invert__ = operator


class Tensor(Dummy):
    """A shape."""

    def __init__(self, *shape, **kwargs):
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = shape[0]
        self.shape = tuple(int(d) for d in shape)

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        return math.prod(self.shape)

    def dim(self):
        return len(self.shape)

    def item(self):
        return 0

    def clone(self):
        return self

    def tolist(self):
        return [0.0] * len(self)

    def unsqueeze(self, dim):
        at = dim if dim >= 0 else len(self.shape) + 1 + dim
        return Tensor(*self.shape[:at], 1, *self.shape[at:])

    def __len__(self):
        return self.shape[0] if self.shape else 0

    def __iter__(self):
        return iter([Dummy()] * len(self))


class Parameter(Tensor):
    def __init__(self, data=None, requires_grad=True):
        super().__init__(*getattr(data, "shape", ()))
        self.data = Dummy()


class Module(Dummy):
    """Registers parameters and sub-modules in the order in which they are set, as torch.nn.Module does."""

    def __init__(self, *args, **kwargs):
        self.__dict__.setdefault("_modules", {})
        self.__dict__.setdefault("_parameters", {})
        self.__dict__["training"] = False

    def __setattr__(self, name, value):
        kind = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else None
        for k in ("_parameters", "_modules"):
            if k == kind:
                self.__dict__.setdefault(k, {})[name] = value
            else:
                self.__dict__.get(k, {}).pop(name, None)
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def __bool__(self):
        return True

    def __call__(self, *args, **kwargs):
        return Tensor()

    def register_buffer(self, name, value, persistent=True):
        object.__setattr__(self, name, value)

    def register_parameter(self, name, value):
        object.__setattr__(self, name, None) if value is None else setattr(self, name, value)

    def add_module(self, name, module):
        setattr(self, name, module)

    register_module = add_module

    def named_children(self):
        return self._modules.items()

    def children(self):
        return iter(self._modules.values())

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        yield prefix, self
        for name, m in self._modules.items():
            yield from m.named_modules(prefix=f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return (m for _, m in self.named_modules())

    def named_parameters(self, *args, **kwargs):
        for path, m in self.named_modules():
            for name, p in m._parameters.items():
                yield (f"{path}.{name}" if path else name), p

    def parameters(self, recurse=True):
        return (p for _, p in self.named_parameters())

    def named_buffers(self, *args, **kwargs):
        return iter(())

    buffers = named_buffers

    def state_dict(self, *args, **kwargs):
        return {}

    def same(self, *args, **kwargs):
        return self

    to = half = float = eval = train = cuda = cpu = requires_grad_ = apply = same

    def hook(self, *args, **kwargs):
        pass

    register_forward_hook = register_forward_pre_hook = register_load_state_dict_pre_hook = hook
    _register_load_state_dict_pre_hook = register_state_dict_hook = register_load_state_dict_post_hook = hook

    def get_submodule(self, path):
        m = self
        for name in filter(None, path.split(".")):
            m = m._modules[name]
        return m


class ModuleList(Module):
    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    def append(self, m):
        setattr(self, str(len(self._modules)), m)
        return self

    def extend(self, modules):
        for m in modules:
            self.append(m)

    def insert(self, index, m):
        modules = list(self._modules.values())
        modules.insert(index, m)
        self._modules.clear()
        self.extend(modules)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        modules = list(self._modules.values())
        return type(self)(modules[index]) if isinstance(index, slice) else modules[index]

    def __setitem__(self, index, m):
        setattr(self, str(index), m)


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules):
        for name, m in modules.items() if hasattr(modules, "items") else modules:
            setattr(self, name, m)

    def __setitem__(self, name, m):
        setattr(self, name, m)

    def __getitem__(self, name):
        return self._modules[name]

    def __contains__(self, name):
        return name in self._modules

    def __iter__(self):
        return iter(self._modules)

    def __len__(self):
        return len(self._modules)

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()


class Sequential(ModuleList):
    def __init__(self, *modules):
        Module.__init__(self)
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, m in modules[0].items():
                setattr(self, name, m)
        else:
            self.extend(modules)


class ParameterList(Module):
    def __init__(self, parameters=()):
        super().__init__()
        for p in parameters:
            self.append(p)

    def append(self, p):
        setattr(self, str(len(self._parameters)), p if isinstance(p, Parameter) else Parameter(p))
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def __getitem__(self, index):
        return list(self._parameters.values())[index]


class Weighted(Module):
    def hold(self, shape, bias=None):
        """Sets weight, and bias, which has the given size or is absent."""
        self.weight = None if shape is None else Parameter(Tensor(*shape))
        self.bias = Parameter(Tensor(*bias)) if bias else None


class Linear(Weighted):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.hold((out_features, in_features), (out_features,) if bias else None)


class Embedding(Weighted):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, *args, **kwargs):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.hold((num_embeddings, embedding_dim))


class LayerNorm(Weighted):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, *args, **kwargs):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.hold(shape if elementwise_affine else None, shape if elementwise_affine and bias else None)


class RMSNorm(Weighted):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, **kwargs):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.hold(shape if elementwise_affine else None)


class GroupNorm(Weighted):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, **kwargs):
        super().__init__()
        self.hold((num_channels,) if affine else None, (num_channels,) if affine else None)


class BatchNorm(Weighted):
    def __init__(self, num_features, *args, **kwargs):
        super().__init__()
        self.hold((num_features,), (num_features,))


def conv(dims):
    class Conv(Weighted):
        def __init__(self, in_channels, out_channels, kernel_size=1, stride=1, padding=0, dilation=1, groups=1,
                     bias=True, *args, **kwargs):
            super().__init__()
            kernel = (kernel_size,) * dims if isinstance(kernel_size, int) else tuple(kernel_size)
            self.in_channels, self.out_channels, self.kernel_size, self.groups = in_channels, out_channels, kernel, groups
            self.stride = (stride,) * dims if isinstance(stride, int) else stride
            self.padding = (padding,) * dims if isinstance(padding, int) else padding
            self.dilation = dilation
            self.hold((out_channels, in_channels // groups, *kernel), (out_channels,) if bias else None)

    return Conv


class PReLU(Weighted):
    def __init__(self, num_parameters=1, **kwargs):
        super().__init__()
        self.hold((num_parameters,))


class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, **kwargs):
        super().__init__()
        self.in_proj_weight = Parameter(Tensor(3 * embed_dim, embed_dim))
        self.in_proj_bias = Parameter(Tensor(3 * embed_dim))
        self.out_proj = Linear(embed_dim, embed_dim)


class Stub(types.ModuleType):
    """A Python module that makes up whatever is asked of it; names with a capital are classes."""

    base = Dummy

    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, Finder(), is_package=True)

    def __getattr__(self, name):
        if dunder(name):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if full in sys.modules:
            return sys.modules[full]
        if self.__name__ == "torch" and name in SUBMODULES:
            return importlib.import_module(full)
        if not name[0].isupper():
            return Dummy()
        setattr(self, name, DummyType(name, (self.base,), {}))
        return getattr(self, name)


SUBMODULES = """nn utils cuda distributed autograd backends compiler fx jit library onnx overrides special linalg fft amp
mps optim distributions""".split()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes a Stub of every module below torch."""

    def find_spec(self, name, path, target=None):
        if name.startswith("torch."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


def shaped(*args, **kwargs):
    """torch.zeros and the like: a size, as several numbers or one tuple."""
    size = kwargs.get("size", args)
    try:
        return Tensor(*([size] if isinstance(size, int) else size))
    except TypeError:
        return Tensor()


def arange(*args, start=0, end=1, **kwargs):
    return Tensor(len(range(*[int(a) for a in args or (start, end)])))


def tensor(data, *args, **kwargs):
    return Tensor(len(data)) if isinstance(data, (list, tuple)) else Tensor()


class Context(Dummy):
    """no_grad and the like: a context and, with or without brackets, a decorator."""

    def __new__(cls, *args, **kwargs):
        return args[0] if args and isinstance(args[0], types.FunctionType) else super().__new__(cls)


def decorator(*args, **kwargs):
    return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else lambda f: f


def no(*args):
    return False


def install():
    """Puts the stand-in into sys.modules, and its version where packages look for it."""
    torch, nn = Stub("torch"), Stub("torch.nn")
    nn.base = Module
    sys.meta_path.insert(0, Finder())
    sys.modules.update({"torch": torch, "torch.nn": nn})
    vars(torch).update(
        __version__=VERSION, nn=nn, Tensor=Tensor, Function=DummyType("Function", (Dummy,), {}),
        zeros=shaped, ones=shaped, empty=shaped, randn=shaped, rand=shaped, arange=arange, tensor=tensor,
        full=lambda size, *a, **k: shaped(size), linspace=lambda a, b, n=1, *x, **k: Tensor(int(n)),
        zeros_like=lambda t, **k: shaped(*t.shape), ones_like=lambda t, **k: shaped(*t.shape),
        empty_like=lambda t, **k: shaped(*t.shape), is_tensor=lambda x: isinstance(x, Tensor), is_grad_enabled=no,
        no_grad=Context, enable_grad=Context, inference_mode=Context, compile=decorator,
        device=DummyType("device", (Dummy,), {"type": "cpu"}), dtype=DummyType("dtype", (Dummy,), {}),
    )
    classes = [Module, ModuleList, ModuleDict, Sequential, ParameterList, Linear, Embedding, LayerNorm, RMSNorm,
               GroupNorm, PReLU, MultiheadAttention]
    vars(nn).update({c.__name__: c for c in classes}, Parameter=Parameter, Buffer=Tensor, Bilinear=Linear)
    for i in (1, 2, 3):
        one = conv(i)
        vars(nn).update({f"Conv{i}d": one, f"ConvTranspose{i}d": one, f"BatchNorm{i}d": BatchNorm})
    sub = importlib.import_module
    sub("torch.nn.parameter").Parameter = Parameter
    sub("torch.nn.modules")
    sub("torch.autograd").Function = torch.Function
    sub("torch.cuda").is_available = no
    vars(sub("torch.compiler")).update(is_compiling=no, disable=decorator, allow_in_graph=decorator)
    vars(sub("torch.jit")).update(is_tracing=no, is_scripting=no, script=decorator, ignore=decorator, unused=decorator,
                                  script_if_tracing=decorator, export=decorator)
    sub("torch.utils.checkpoint")
    real = importlib.metadata.version
    importlib.metadata.version = lambda name: VERSION if name == "torch" else real(name)


install()
