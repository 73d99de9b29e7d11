#!/bin/sh
# Compiles decode.cu to PTX on standard output, with the hashes of its sources on top.
# The bytes depend on the compiler: clang 19.1.7 made the decode.ptx that is committed.
# Debian: apt-get install --no-install-recommends clang-19. No CUDA toolkit is needed.
set -eu
cd "$(dirname "$0")"
for f in decode.cu tables.h device.h; do
	echo "// $f sha256 $(sha256sum "$f" | cut -d' ' -f1)"
done
"${CLANG:-clang-19}" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-feature=+ptx60 \
	-nocudainc -nocudalib -fcuda-short-ptr -mllvm -nvptx-short-ptr -O3 -S -o - decode.cu
