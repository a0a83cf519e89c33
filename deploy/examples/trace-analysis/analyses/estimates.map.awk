# How well people estimate: the part of the requested time that a job used, in
# twentieths; 20 is all of it, or more.
asked > 0 {
    part = int(run * 20 / asked)
    if (part > 20) part = 20
    emit(part, part " " asked)
}
