# For each week of the log: different users, jobs, and the jobs of the busiest user.
BEGIN { header("week users jobs most_by_one_user") }
$1 != week && NR > 1 { close_user(); flush() }
$2 != user && NR > 1 { close_user() }
{ week = $1; user = $2; mine += $3 }
END { if (NR) { close_user(); flush() } }
function close_user() {
    if (!mine) return
    users++
    jobs += mine
    if (mine > most) most = mine
    mine = 0
}
function flush() {
    print week, users, jobs, most
    users = jobs = most = 0
}
