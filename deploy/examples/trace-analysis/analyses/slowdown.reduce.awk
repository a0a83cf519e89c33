# For each queue: jobs, and their bounded slowdown in thousandths.
BEGIN { header("queue jobs mean median p90 p99") }
$1 != key && NR > 1 { flush() }
{ key = $1; v[++n] = $2; sum += $2 }
END { if (NR) flush() }
function flush() {
    print key, n, int0(div(sum, n)), quantile(500), quantile(900), quantile(990)
    n = sum = 0
}
