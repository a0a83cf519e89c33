# The middle 95 % of the resampled means, in thousandths of a second.
{ v[++n] = $2 }
END {
    print "resamples low median high"
    print n, quantile(25), quantile(500), quantile(975)
}
