# How much waiting cost, by queue: each job's bounded slowdown in thousandths,
# (wait + runtime) / max(runtime, 10 s), at least 1.
{
    bounded = run < 10 ? 10 : run
    slowdown = int((wait + run) * 1000 / bounded)
    if (slowdown < 1000) slowdown = 1000
    emit(queue, queue " " slowdown)
}
