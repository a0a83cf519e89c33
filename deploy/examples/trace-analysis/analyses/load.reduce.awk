# For each week of the log: the share of 128 processors that was busy, in
# permille, and the busiest hour's processors, in tenths.
BEGIN { header("week busy_permille peak_hour peak_processors_tenths") }
$1 != week && NR > 1 { close_hour(); flush() }
$2 != hour && NR > 1 { close_hour() }
{ week = $1; hour = $2; busy += $3 }
END { if (NR) { close_hour(); flush() } }
function close_hour() {
    if (busy > peak) { peak = busy; at = hour }
    total += busy
    busy = 0
}
function flush() {
    print week, int0(div(total * 1000, 128 * 604800)), at, int0(div(peak * 10, 3600))
    total = peak = at = 0
}
