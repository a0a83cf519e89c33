# What every map shares: it reads a log in the Standard Workload Format, keeps
# this task's share of the jobs, names their fields, and leaves records for the
# tasks of the reduce stage, one file for each of them.
#
# Integers only, below 2^53: every awk then gives the same bytes.
#
# Set by map.sh: task, tasks (this task's place and their number), reducers,
# least, most (widths of the jobs to keep, in processors), dir (where the
# records go), start (Unix time of the log's zero), zone (its offset from UTC).

BEGIN {
    for (i = 0; i < reducers; i++) printf "" > (dir "/" i)
}

# emit leaves a record for the reduce task that the key belongs to; a record
# starts with its key.
function emit(key, record) { print record > (dir "/" (key % reducers)) }

# int0 writes a whole number in full, however large.
function int0(x) { return sprintf("%.0f", x) }

/^;/ { next }
{ lines++ }
lines % tasks != task { next }
{
    submit = $2; wait = $3; run = $4; procs = $5; asked = $9
    user = $12; program = $14; queue = $15
    local = start + zone + submit
}
# A job without a runtime was cancelled before it ran.
run < 0 || procs < least || procs > most { next }
{ jobs++ }

END {
    if (!lines) exit 1
    printf "task %d of %d: %d of %d lines are mine to analyse\n", task, tasks, jobs, lines
}
