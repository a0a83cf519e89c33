# How long jobs run: each runtime with the power of two at or below it.
{
    bin = run > 0
    while (bin && 2 * bin <= run) bin *= 2
    emit(0, bin " " run)
}
