#!/bin/sh
# Runs the examples of TEIR on a GPU of sm_90a, in FP32 and FP64, at the tile level and at the
# kernel level, and compares them with their meaning; compiles them for sm_80, too.
#
#     sh teir/tests/card.sh target/release/carbyne
set -u
carbyne=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
sanitizer=$(command -v compute-sanitizer || echo)
for example in examples/*.teir; do
    for type in FP32 FP64; do
        for level in tile kernel; do
            name="$(basename "$example" .teir) $type $level"
            sed "s/^data_type .*/data_type $type/" "$example" > "$folder/operation.teir"
            "$carbyne" teir "$folder/operation.teir" --level $level -o "$folder/k.cby" 2> "$folder/err" &&
                "$carbyne" compile "$folder/k.cby" --arch sm_80 --emit cubin -o "$folder/k.cubin" 2> "$folder/err" &&
                $sanitizer "$carbyne" run "$folder/k.cby" --arch sm_90a --ints --repeat 0 --sustain 0 > "$folder/out" 2> "$folder/err"
            status=$?
            if [ $status -ne 0 ]; then
                failed=1
                cat "$folder/out" "$folder/err"
            fi
            echo "$name: exit code $status"
        done
    done
done
exit $failed
