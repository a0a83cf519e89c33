# Jobs and processor-hours of each user.
BEGIN { header("user jobs processor_hours") }
$1 != key && NR > 1 { flush() }
{ key = $1; jobs += $2; used += $3 }
END { if (NR) flush() }
function flush() {
    print key, jobs, int0(div(used, 3600))
    jobs = used = 0
}
