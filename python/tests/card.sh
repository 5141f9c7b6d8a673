#!/bin/sh
# Tests calls on a machine with a GPU and PyTorch, and prints the tables of docs/python.md: times of a call, a kernel, and layers of models.
#
#     sh python/tests/card.sh WHEEL...    # of carbyne, optionally of apache-tvm-ffi
set -eu
cd "$(dirname "$0")/../.."
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
python3 -m pip install --quiet --no-deps --no-index --target "$packages" "$@"
export PYTHONPATH="$packages"
failed=0
python3 -m pytest -q -rs -p no:cacheprovider python/tests/test_card.py || failed=1
if sanitizer=$(command -v compute-sanitizer); then
    # PyTorch's memory cache would hide accesses beyond a tensor's end.
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool memcheck --error-exitcode 9 \
        python3 -m pytest -q -p no:cacheprovider python/tests/test_card.py -k "not graph and not threads and not fork and not jax and not compiled" || failed=1
else
    echo "compute-sanitizer is not installed: accesses were not checked"
fi
python3 python/bench/call.py || failed=1
python3 python/bench/norm.py || failed=1
python3 python/examples/llama_layer.py || failed=1
python3 python/examples/bert_layer.py || failed=1
exit $failed
