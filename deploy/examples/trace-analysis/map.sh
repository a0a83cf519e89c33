#!/bin/sh
# map.sh ANALYSIS: one task of a map stage. Reads its share of the log's lines
# and leaves what it found in OUT/map-TASK, a file for each reduce task.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")"
. ./settings.sh

# Written aside and renamed: an attempt that is cut short leaves nothing that a
# reduce task would read.
aside=$OUT/.map-$CANDOR_TASK.$$
mkdir -p "$aside"
gzip -dc "$TRACE" | "$AWK" \
    -v task="$CANDOR_TASK" -v tasks="$CANDOR_TASKS" -v reducers="$REDUCERS" -v dir="$aside" \
    -v least="${WIDTHS%-*}" -v most="${WIDTHS#*-}" -v start=893466664 -v zone=-28800 \
    -f common.awk -f "analyses/$1.map.awk"
rm -rf "$OUT/map-$CANDOR_TASK"
mv "$aside" "$OUT/map-$CANDOR_TASK"
