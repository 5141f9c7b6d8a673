#!/bin/sh
# Compares f16 matrix products without pins with the rate of mma.sync with operands in registers, in turns, and prints
# the reached fraction of this rate. The driver reports the clocks while the kernels run.
#
#     cargo build --release --features gpu && sh bench/mma_sync.sh [ARCH]
#
# CARBYNE is the program, default target/release/carbyne; ROUNDS is the number of repetitions, default 3.
set -eu
arch=${1:-sm_90a}
carbyne=${CARBYNE:-target/release/carbyne}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for n in 4096 8192; do
  printf 'carbyne 2\n%%A:[%s,%s].f16.GL\n%%B:[%s,%s].f16.GL\n%%C:[%s,%s].f16.GL\nMatMul.set @gemm (%%A, %%B) -> (%%C) acc=f32\n' \
    $n $n $n $n $n $n > "$work/$n.cby"
done
cp "$here/mma_rate.cby" "$work/rate.cby"

# The median launch time in microseconds.
time_of() {
  "$carbyne" run "$work/$1.cby" --arch "$arch" --repeat "$2" --compare 1 2>&1 |
    sed -n 's/.*launches, L2 flushed: median \([0-9.]*\) us.*/\1/p' | head -1
}

clocks() {
  nvidia-smi --query-gpu=clocks.sm,power.draw.instant --format=csv,noheader 2>/dev/null | head -1
}

for round in $(seq "${ROUNDS:-3}"); do
  rate=$(time_of rate 30)
  for n in 4096 8192; do
    time_of $n 30 > "$work/t" &
    job=$!
    seen=
    while kill -0 $job 2>/dev/null; do seen=$(clocks); sleep 0.1; done
    wait $job
    awk -v n=$n -v us="$(cat "$work/t")" -v rate="$rate" -v seen="$seen" -v round="$round" 'BEGIN {
      most = 2 * 132 * 128 * 256 * 16 * 8192 / rate / 1e6
      own = 2 * n * n * n / us / 1e6
      printf "round %d, %d^3: %.1f us, %.0f TFLOP/s, of %.0f (%.1f us) %.1f %%; then %s\n", round, n, us, own, most, rate, 100 * own / most, seen
    }'
  done
done
