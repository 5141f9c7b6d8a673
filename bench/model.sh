#!/bin/sh
# Times the kernels of bench/model.tsv on this machine's GPU, with the L2 cache flushed before every launch, and prints the table.
#
#     cargo build --release --features gpu
#     mkdir kernels && cargo bench --package carbyne-decompose --bench model -- --write $PWD/kernels
#     sh bench/model.sh kernels [ARCH] > bench/model.tsv
#
# CARBYNE is the program, default target/release/carbyne; REPEAT is the number of measured launches, default 30. The
# table contains medians.
set -eu
dir=$1
arch=${2:-sm_90a}
carbyne=${CARBYNE:-target/release/carbyne}
printf '# %s: microseconds, median of %s launches, L2 flushed; bench/model.sh\n' "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)" "${REPEAT:-30}"
tab=$(printf '\t')
while IFS="$tab" read -r number problem parameters; do
  us=$("$carbyne" run "$dir/$number.cby" --arch "$arch" --repeat "${REPEAT:-30}" --compare 5 2> "$dir/$number.err" |
    sed -n 's/.*launches, L2 flushed: median \([0-9.]*\) us.*/\1/p' | head -1)
  if [ -z "$us" ]; then
    us=$(sed -n 's/.*launches, L2 flushed: median \([0-9.]*\) us.*/\1/p' "$dir/$number.err" | head -1)
  fi
  printf '%s\t%s\t%s\n' "$problem" "$parameters" "${us:-failed}"
done < "$dir/list.tsv"
