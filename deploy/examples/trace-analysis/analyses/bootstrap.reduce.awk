# This task's part of 96 bootstrap resamples of the waits: the mean of each, in
# thousandths of a second. Resample b draws with the generator
# x -> 69069 x + 1 (mod 2^32), whose products stay below 2^53, from x = b + 1.
{ v[++n] = $1 }
END {
    if (!n) exit
    for (b = task; b < 96; b += tasks) {
        x = b + 1
        sum = 0
        for (i = 0; i < n; i++) {
            x = (69069 * x + 1) % 4294967296
            sum += v[1 + int(x / 4294967296 * n)]
        }
        print b, int0(div(1000 * sum, n))
    }
}
