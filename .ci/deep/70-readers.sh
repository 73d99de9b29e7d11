#!/usr/bin/env bash
# Loads tiny models of the real classes in the official loader (dfloat11 0.5.0) by the very code that their model cards
# show, and in our own, df11, with transformers 4 and 5 and diffusers, and wants weights, outputs and generated tokens equal to
# those of the BF16 original, bit for bit. Before that, it checks that plain from_pretrained loads none of our results. Runs on
# a CPU: the official loader's kernel is replaced by readers/decode.c; df11 runs as on a GPU, with verify/testdata/stub for its
# driver, and decoded. Needs Python, a C compiler, binutils, PyPI and 7 GB of disk.
# It takes a few lines of internal/catalog/tried.txt, one for each way to load, in some minutes; 70-readers.sh --all takes all of
# them, in a quarter of an hour; names of classes, those alone. With --write and names it states there what came out, and in names.txt
# what the class loads. With --missing, and names or not, it does so for lines that lack a result, so a run that was stopped goes on.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

tried=internal/catalog/tried.txt
if [ "${1-}" = --write ]; then
  for class in "${@:2}"; do sed -i -E "s/^($class [^ ]+) .*/\\1 - - - df11=-,-,-/" "$tried"; done # else the cards state the known results
fi
converter

. .ci/deep/readers/environment.sh

if [ "${1-}" = --write ] || [ "${1-}" = --missing ]; then # of both versions, since a class may be in one alone
  for path in '' "$venv/transformers-5"; do
    PYTHONPATH=$path PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore .ci/deep/readers/names.py "$tried" "${tried%tried.txt}names.txt" "$@"
  done
fi

# The package df11 as the wheel holds it, and the driver's stand-in.
mkdir -p "$work/df11/df11" "$work/driver"
cp packaging/df11/df11/*.py verify/kernel/decode.ptx "$work/df11/df11/"
export DF11_TEST_DRIVER=$work/driver/libcuda.so.1
cc -shared -fPIC -O2 -pthread -DHOST -DDIR="\"$work/driver\"" -o "$DF11_TEST_DRIVER" verify/testdata/stub/stub.c

# PyTorch's own CUDA, with stand-ins for the driver and the runtime of two GPUs.
mkdir -p "$work/cuda"
cc -shared -fPIC -O2 -pthread -DHOST -DDIR="\"$work/cuda\"" -o "$work/cuda/libcuda.so.1" verify/testdata/stub/stub.c
python3 .ci/deep/readers/nocuda.py "$(echo "$venv"/lib/python3*/site-packages/torch/lib)" libcudart.so.12 .ci/deep/readers/cudart.c "$work/cuda/libcudart.so.12" -DDIR="\"$work/cuda\""

# run PATH SCRIPT ARGUMENT…: runs a script with the packages in PATH first.
run() {
  PYTHONPATH=$1 PYTHONDONTWRITEBYTECODE=1 PATH=$work/bin:$PATH HF_HUB_OFFLINE=1 TQDM_DISABLE=1 \
    "$venv/bin/python" -W ignore ".ci/deep/readers/$2" "$DF11_CONVERT" "${@:3}" 2>"$work/log" || {
    tail -n 40 "$work/log"
    exit 1
  }
}

# around: what is checked before the classes, unless the run only fills the table.
around() {
  mkdir "$work/plain" "$work/cards"
  # Nothing loads a result as an ordinary model, whose weights would be random. What transformers 4 has saved is loaded with 5, too.
  for path in '' "$venv/transformers-5"; do run "$path" plain.py "$work/plain"; done
  # The code of cards for df11, as it stands.
  for path in '' "$venv/transformers-5"; do run "$path:$work/df11" cards.py "$work/cards"; done
  peft=$CI_CACHE/peft-0.21.2
  once "$peft" adapters || skip 'PyPI does not give peft: no adapter was tried with df11'
  for path in '' "$venv/transformers-5"; do
    run "$path:$work/df11:$peft" df11_test.py "$work"
    # A flipped bit must be noticed, or else nothing below means anything.
    for loader in '' --df11; do run "$path:$work/df11" readers.py "$tried" "$work" ${loader:+$loader} --mutate LlamaForCausalLM; done
  done
  # Once: what GPUs do doesn't depend on transformers.
  DF11_TEST_DRIVER='' LD_LIBRARY_PATH=$work/cuda LD_PRELOAD=$work/cuda/libcudart.so.12 run ":$work/df11" cuda_test.py "$work" "$work/cuda/log"
}
adapters() { "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$peft" "peft==${peft##*-}"; }
[ "${1-}" = --missing ] || around

# Mixtures of experts, whose experts transformers 5 calls with the router's picks; and units that are parameters, forged.
run "$venv/transformers-5:$work/df11" experts_test.py "$work"
official="threads_per_block env PYTHONPATH=$venv/transformers-5 $venv/bin/python -W ignore .ci/deep/readers/refuses.py $work"
run "$venv/transformers-5:$work/df11" forged.py "$work" "$official"

for path in '' "$venv/transformers-5"; do
  for loader in '' --df11; do run "$path:$work/df11" readers.py "$tried" "$work" ${loader:+$loader} "$@"; done
done
if grep VIOLATION "$work/driver/log" "$work/cuda/log"; then fail 'df11 misuses the driver'; fi
