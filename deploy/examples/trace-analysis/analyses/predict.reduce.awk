# For each user with at least 100 jobs: how close two predictions of the runtime
# come, as the mean of smaller/larger in permille. One is the time requested,
# the other the mean of the user's last two runtimes.
BEGIN { header("user jobs request_permille last_two_permille") }
$1 != key && NR > 1 { flush() }
{
    key = $1; run = $3; asked = $4
    if (++seen > 2) {
        n++
        request += close_to(run, asked)
        recent += close_to(2 * run, last + before)
    }
    before = last; last = run
}
END { if (NR) flush() }
function close_to(a, b) {
    if (a == b) return 1000
    return a < b ? int(1000 * a / b) : int(1000 * b / a)
}
function flush() {
    if (seen >= 100) print key, seen, div(request, n), div(recent, n)
    seen = n = request = recent = 0
}
