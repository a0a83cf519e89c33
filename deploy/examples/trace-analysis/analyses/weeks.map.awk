# How many people were about: each user seen in a week of the log, and the jobs
# and different programs that came with them.
{
    week = int(submit / 604800)
    jobs_of[week " " user]++
}
END {
    for (k in jobs_of) {
        split(k, part, " ")
        emit(part[1], k " " jobs_of[k])
    }
}
