# Settings that a job may give in its environment, with their defaults.

TRACE=${TRACE:-sdsc-sp2-1999.swf.gz}                   # the log to analyse
OUT=${OUT:-${TMPDIR:-/tmp}/candor-job-$CANDOR_JOB}     # where tasks leave their results, shared by all of them
WIDTHS=${WIDTHS:-1-128}                                # least and most processors of the jobs to keep
REDUCERS=${REDUCERS:-1}                                # tasks of the reduce stage
AWK=${AWK:-awk}
mkdir -p "$OUT"
