"""States which names a class loads: python names.py TRIED NAMES [--missing] [CLASS...]

For lines of TRIED (internal/catalog/tried.txt) a tiny model of the class is built, and the names in its state dict are written to
NAMES (internal/catalog/names.txt), with # for numbers, and those that transformers 5 gives them when it saves a checkpoint. A name that is there only if a member of the config is true or false is
followed by ?member or ?!member. Prefixes of names that the class leaves out when it loads a checkpoint end with *. A line keeps the
names that another version of a library has added. Without classes, all lines are written; with --missing, those without names.
Besides those of TRIED there are lines for the same models with another head, one that is never compressed.
"""
import contextlib
import inspect
import os
import pathlib
import re
import sys

os.environ |= {"HF_HUB_OFFLINE": "1"}

import diffusers
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import tiny


def numberless(name):
    return re.sub(r"(^|(?<=\.))\d+(?=\.|$)", "#", name)


def keys(build):
    """The names of a model that a function builds."""
    for device in "meta", "cpu":
        with contextlib.suppress(Exception), torch.device(device):
            model = build()
            state = model.state_dict()
            return {numberless(k) for k in [*state, *saved(model, state)]}
    return set()


def saved(model, state):
    """The names in a checkpoint that transformers 5 writes."""
    if not hasattr(transformers, "core_model_loading") or not isinstance(model, transformers.PreTrainedModel):
        return ()
    return transformers.core_model_loading.revert_weight_conversion(model, state)


def switched(small):
    """Copies of a config, each with one switch turned, and the words for it."""
    for part in (small, small.get_text_config()):
        for name, value in vars(part).items():
            if isinstance(value, bool) and not re.match("_|return_|output_|use_cache|tie_|is_|torchscript|pruned|gradient|remove_inv", name):
                setattr(part, name, not value)
                yield ("?!" if value else "?") + name
                setattr(part, name, value)
        if part is small.get_text_config():
            return


def names_of(row):
    """The names that a tiny model of a row loads."""
    cls = tiny.real_class(row[0])
    if cls is None:
        return set()
    if issubclass(cls, diffusers.DiffusionPipeline):
        return names_of_part(row[0])
    model_type, _, fused = row[1].partition("+")
    small = tiny.config(CONFIG_MAPPING[model_type] if model_type in CONFIG_MAPPING else cls.config_class, bool(fused))
    if not isinstance(small, cls.config_class):
        small = tiny.config(cls.config_class, bool(fused))
    plain = keys(lambda: cls(small))
    out = set(plain)
    for word in switched(small):
        out |= {f"{name}{word}" for name in keys(lambda: cls(small)) - plain}
    for pattern in getattr(cls, "_keys_to_ignore_on_load_unexpected", None) or []:
        literal = re.sub(r"\\(.)", r"\1", re.match(r"\^?((?:[\w]|\\\.)*)", pattern)[1])
        if pattern.startswith("^") and literal:
            out.add(numberless(literal) + "*")
    return out


def names_of_part(name):
    """The names that tiny models of a class of diffusers load, with each switch that is off, or all of tiny.SWITCHES."""
    cls, small = getattr(diffusers, name), tiny.part_config(name)

    def build(turned):
        return keys(lambda: cls(**small | turned))
    plain = build({})
    out = set(plain)
    defaults = {key: p.default for key, p in inspect.signature(cls.__init__).parameters.items()}
    for key, value in (defaults | small).items():
        if isinstance(value, bool):
            out |= {f"{x}{'?!' if value else '?'}{key}" for x in build({key: not value}) - plain}
    turned = tiny.SWITCHES[name][0] if name in tiny.SWITCHES else {}
    full = build(turned)
    alone = {key: build({key: v}) for key, v in turned.items()}
    needs = {key: full - build({k: v for k, v in turned.items() if k != key}) for key in turned}
    for x in full - plain:  # each switch that suffices; else, of those that it needs, the one that fewest others need
        one = [min((key for key in turned if x in needs[key]), key=lambda key: len(needs[key]), default=None)]
        out |= {f"{x}?{key}" for key in [key for key in turned if x in alone[key]] or one}
    return out


HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")


def heads(rows):
    """Rows for other heads of the models in rows, if this version has such classes."""
    known, found = {row[0] for row in rows}, []
    for name, kind, *_ in rows:
        stem = re.fullmatch(r"(\w+?)(For\w+|Model)", name)
        for other in (stem[1] + head for head in HEADS if stem):
            if other not in known and hasattr(transformers, other):
                known.add(other)
                found.append([other, kind])
    return found


def main(tried, names, *wanted):
    tried, names = pathlib.Path(tried), pathlib.Path(names)
    wanted, known, head = set(wanted), {}, []
    missing = "--missing" in wanted
    wanted -= {"--missing", "--write"}
    for line in names.read_text().splitlines() if names.exists() else []:
        words = line.split()
        head.append(line) if words[0] == "#" else known.__setitem__(tuple(words[:2]), set(words[2:]))
    rows = [line.split() for line in tried.read_text().splitlines() if not line.startswith("#")]
    transformers.logging.set_verbosity_error()
    rows += heads(rows)
    rows += [[*key] for key in known if key not in {tuple(row[:2]) for row in rows}]  # heads that another version has
    for row in rows:
        if row[0] in (wanted or {row[0]}) and not (missing and known.get(tuple(row[:2]))):
            try:
                found = names_of(row)
            except Exception as e:
                found = set()
                print(f"{row[0]} {row[1]}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
            known[tuple(row[:2])] = known.get(tuple(row[:2]), set()) | found
    lines = [" ".join([*row[:2], *sorted(known[tuple(row[:2])])]) for row in rows if known.get(tuple(row[:2]))]
    names.write_text("\n".join([*head, *lines]) + "\n")


main(*sys.argv[1:])
