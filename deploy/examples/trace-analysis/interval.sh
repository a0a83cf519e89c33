#!/bin/sh
# interval.sh: the last stage of the bootstrap. Reads the resampled means of
# every reduce task and writes their 95 % interval to OUT/result.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")"
. ./settings.sh

sort -k2,2n "$OUT"/result-* | "$AWK" -f lib.awk -f analyses/bootstrap.interval.awk > "$OUT/.result.$$"
mv "$OUT/.result.$$" "$OUT/result"
cat "$OUT/result"
