# Histogram of runtimes in powers of two, and their quantiles, in seconds.
BEGIN { header("runtime_from jobs") }
$1 != key && NR > 1 { flush() }
{ key = $1; count++; v[++n] = $2 }
END {
    if (!NR) exit
    flush()
    print "quantile", "p10", quantile(100)
    print "quantile", "p50", quantile(500)
    print "quantile", "p90", quantile(900)
    print "quantile", "p99", quantile(990)
    print "quantile", "max", v[n]
}
function flush() {
    print key, count
    count = 0
}
