# For each program that ran at least 100 times: its runs, and the quartiles of its runtime in seconds.
BEGIN { header("program runs p25 median p75") }
$1 != key && NR > 1 { flush() }
{ key = $1; v[++n] = $2 }
END { if (NR) flush() }
function flush() {
    if (n >= 100) print key, n, quantile(250), quantile(500), quantile(750)
    n = 0
}
