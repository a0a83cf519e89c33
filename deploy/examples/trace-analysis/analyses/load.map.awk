# How busy the machine was: the processor-seconds of each job, spread over the
# hours it ran in. The key is the week of the log, so that one reduce task sees
# all the hours of a week.
{
    from = submit + wait
    until = from + run
    for (hour = int(from / 3600); from < until; hour++) {
        edge = (hour + 1) * 3600
        if (edge > until) edge = until
        busy[hour] += procs * (edge - from)
        from = edge
    }
}
END { for (h in busy) emit(int(h / 168), int(h / 168) " " h " " int0(busy[h])) }
