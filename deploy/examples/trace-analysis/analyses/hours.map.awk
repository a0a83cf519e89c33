# When people submit: the hour of the day of each job, by the machine's clock.
{
    hour = int(local / 3600) % 24
    emit(hour, hour " " wait " " int0(procs * run))
}
