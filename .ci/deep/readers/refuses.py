"""Loads a folder in the official loader, into a model that has its modules. Usage: refuses.py SCRATCH FOLDER"""
import pathlib
import sys

import torch
import transformers
import transformers.initialization

import official

official.load(sys.argv[1])
transformers.modeling_utils.no_init_weights = transformers.initialization.no_init_weights  # as cards do for transformers 5
from dfloat11 import DFloat11Model

model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(sys.argv[2]))
DFloat11Model.from_pretrained(sys.argv[2], device="cpu", bfloat16_model=model.to(torch.bfloat16))
