#!/bin/sh
# Times the kernels of bench/model.tsv on this machine's GPU, whose L2 is flushed before every launch, and prints that table.
#
#     cargo build --release --features gpu
#     mkdir kernels && cargo bench --package carbyne-decompose --bench model -- --write $PWD/kernels
#     sh bench/model.sh kernels [ARCH] > bench/model.tsv
#
# CARBYNE names the program, target/release/carbyne without; REPEAT how many launches are measured, 30 without. What is
# printed is the median.
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
