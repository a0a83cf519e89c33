# For each class of width: jobs, and their waits in seconds.
BEGIN { header("widest jobs mean median p90 p99 max") }
$1 != key && NR > 1 { flush() }
{ key = $1; v[++n] = $2; sum += $2 }
END { if (NR) flush() }
function flush(   width, i) {
    width = 1
    for (i = 0; i < key; i++) width *= 2
    print width, n, int0(div(sum, n)), quantile(500), quantile(900), quantile(990), v[n]
    n = sum = 0
}
