# For each hour of the day: jobs, their processor-hours, median and 90th percentile wait in seconds.
BEGIN { header("hour jobs processor_hours wait_median wait_p90") }
$1 != key && NR > 1 { flush() }
{ key = $1; v[++n] = $2; used += $3 }
END { if (NR) flush() }
function flush() {
    print key, n, int0(div(used, 3600)), quantile(500), quantile(900)
    n = used = 0
}
