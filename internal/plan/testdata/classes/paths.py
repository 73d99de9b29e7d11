"""Lists how transformers turns names in a checkpoint into the paths of a class's modules, and which weights it ties.

    v/bin/python paths.py > paths-4.txt; PYTHONPATH=transformers-5 v/bin/python paths.py paths-4.txt > paths-5.txt
    LC_ALL=C sort -u paths-4.txt paths-5.txt | grep -v ' here$' > ../../../catalog/paths.txt

where v has transformers 4.57.6 and torch, and transformers-5 holds 5.23.0. The loader of DF11 knows none of this: a tensor must
have the path of its module. Each line is a class and a fact, from version 4 where that has the class:

    rename FROM TO   a name that begins with FROM begins with TO instead
    under PREFIX     the base model lies under this prefix, which names may lack if all of them do
    bare PREFIX      this is the base model, and names may have this prefix
    auto TYPE        this is what the library makes of a config of this model_type that names no class
    tied NAME        tie_weights may give it another's weight; heads, which are tied to the token embedding, are left out
    new              version 4 has no such class
    change PARTS     in version 5 weights whose names hold this are fused, split or renamed in another way; * is any number
    ?                a way that this script can't express
"""
import inspect
import logging
import re
import sys
import warnings

import torch
import transformers

VERSION = transformers.__version__[0]
NAME = re.compile(r"(?!.*PreTrainedModel).*(ForCausalLM|ForConditionalGeneration|ForMaskedLM|ForRetrieval|LMHeadModel|Model|Encoder)$")  # of classes that are large
HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output|proj_out|decoder|decoder\.bias|lm_head\.bias|predictions\.bias)(\.weight)?$")


def plain(pattern):
    """A regex as a plain start or part of a name; None if it is more than that."""
    text = re.sub(r"\(\?:\(\?!.*?\)\)|\(\?!.*\)|\(\.\+\)|\\1", "", pattern).replace("\\.", ".").rstrip("$")
    return text if re.fullmatch(r"\^?[A-Za-z0-9_.*-]*", text) else None


def part(pattern):
    """The same for a part of a name, without what must not stand before it, and with * for any number."""
    text = re.sub(r"\(?\\d\+\)?", "*", re.sub(r"\(\?<!.*?\)", "", pattern).removeprefix(r"(^|model\.)"))
    return plain(re.sub(r"\(([^()|?]*)\)", r"\1", text))


def rename(source, target):
    source, target = plain(source) or "?", plain(target) or "-"
    return f"rename {source.removeprefix('^')} {target.removeprefix('^')}"


def starts(conversions, base):
    """What starts of names become, by rules that version 5 applies one after the other, as pairs.

    A rule of a part is for names under the part's path, with the base model's prefix or without.
    """
    made = []
    for c in conversions:
        source, target = (("?" if plain(p[0]) is None else plain(p[0])).removeprefix("^") for p in (c.source_patterns, c.target_patterns))
        scope, found = getattr(c, "scope_prefix", None), []
        for path in [""] if scope is None else [f"{base}.{scope}", scope]:
            path = path.strip(".") + "." if path.strip(".") else ""
            full, new = path + source, path + target
            found = [(a + full[len(b):], new) for a, b in made if "?" not in a + b and full.startswith(b.rstrip(".") + ".")]
            if found:
                break
        made += found or [(full, new)]
    return made


def bases(cls):
    """Where the base model is, or that this is one."""
    if prefix := cls.base_model_prefix:
        made = "".join(inspect.getsource(c.__init__) for c in cls.__mro__ if issubclass(c, transformers.PreTrainedModel) and "__init__" in vars(c))
        yield f"{'under' if re.search(rf'self[.]{prefix} *[:=]', made) else 'bare'} {prefix}."


def autos():
    """Model type -> class, of language models and what takes images or sound to them; bidirectional encoders have no class of their own."""
    from transformers.models.auto import modeling_auto as auto
    found = {}
    for kind in ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "IMAGE_TEXT_TO_TEXT"):
        found |= getattr(auto, f"MODEL_FOR_{kind}_MAPPING_NAMES")
    names = {t: c if isinstance(c, str) else c[0] for t, c in found.items() if t not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES}
    return {c: sorted(t for t in names if names[t] == c) for c in names.values()}


def shrink(config):
    for c in (config, *(v for v in vars(config).values() if isinstance(v, transformers.PretrainedConfig))):
        for key, value in vars(c).items():
            if re.search(r"layers$|^n_layer$|^depth$", key) and isinstance(value, int) and not isinstance(value, bool) and value > 2:
                setattr(c, key, 2)
    return config


def conversions(cls):
    """What version 5 does on the way of a class, its submodules' included, as far as the class can be built."""
    from transformers import conversion_mapping as known
    for config in (lambda: shrink(cls.config_class()), cls.config_class):
        try:
            with torch.device("meta"):
                return known.get_model_conversion_mapping(cls(config()), add_legacy=False)
        except Exception:
            continue
    print(f"{cls.__name__}: not built", file=sys.stderr)
    kind = getattr(cls.config_class, "model_type", "")
    return known.get_checkpoint_conversion_mapping(cls.__name__) or known.get_checkpoint_conversion_mapping(kind) or []


def facts(cls, known):
    if VERSION == "4":
        yield "here"
        yield from bases(cls)
        yield from (rename(*pair) for pair in cls._checkpoint_conversion_mapping.items())
    else:
        all_, renames = conversions(cls), []
        for c in all_:
            sources = [c.source_patterns] if isinstance(c.source_patterns, str) else c.source_patterns
            if type(c).__name__ in ("WeightRenaming", "PrefixChange") and sources[0].startswith("^"):
                renames.append(c)
            else:
                yield from (f"change {part(s)}" if part(s) else f"? change {s}" for s in sources)
        if known:
            return
        yield from (f"rename {a or '?'} {b or '-'}" for a, b in starts(renames, cls.base_model_prefix or ""))
        yield "new"
        yield from bases(cls)
    tied = cls._tied_weights_keys or ()
    for name in [n for n in tied if not HEAD.search(n)] if not isinstance(tied, property) else ():
        yield f"tied {plain(name)}" if plain(name) else f"? tied {name}"


def main(there=None):
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    lines = [line.split() for line in open(there)] if there else []
    known, types, made = {line[0] for line in lines}, {line[2] for line in lines if line[1] == "auto"}, autos()
    for name in sorted(dir(transformers)):
        try:
            cls = getattr(transformers, name)
        except Exception:
            continue
        if inspect.isclass(cls) and issubclass(cls, transformers.PreTrainedModel) and cls.config_class and NAME.match(name):
            for fact in [*facts(cls, name in known), *(f"auto {t}" for t in made.get(name, ()) if t not in types)]:
                print(name, fact)


main(*sys.argv[1:])
