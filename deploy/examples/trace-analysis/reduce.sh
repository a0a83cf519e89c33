#!/bin/sh
# reduce.sh ANALYSIS: one task of a reduce stage. Brings together what every map
# task left for it, in the order of the first two columns, and writes
# OUT/result-TASK. The result is also this task's output.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")"
. ./settings.sh

aside=$OUT/.result-$CANDOR_TASK.$$
cat "$OUT"/map-*/"${BUCKET:-$CANDOR_TASK}" | sort -k1,1n -k2,2n |
    "$AWK" -v task="$CANDOR_TASK" -v tasks="$CANDOR_TASKS" -f lib.awk -f "analyses/$1.reduce.awk" > "$aside"
mv "$aside" "$OUT/result-$CANDOR_TASK"
cat "$OUT/result-$CANDOR_TASK"
