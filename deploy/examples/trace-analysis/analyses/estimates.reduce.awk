# For each twentieth of the requested time: jobs that used so much, and what they had asked for, in seconds.
BEGIN { header("used_percent jobs asked_median asked_p90") }
$1 != key && NR > 1 { flush() }
{ key = $1; v[++n] = $2 }
END { if (NR) flush() }
function flush() {
    print key * 5, n, quantile(500), quantile(900)
    n = 0
}
