# How long jobs wait, by width: each job's wait with its class of width, 0 for
# one processor, then 1 for 2, 2 for 3-4, 3 for 5-8, up to 7 for 65-128.
{
    class = 0
    for (width = 1; width < procs; width *= 2) class++
    emit(class, class " " wait)
}
