// Package clienttest has what the tests of the commands share: a site in memory that answers as a test says, runs of
// command lines against it, and comparisons of outputs with golden files. No program may import it.
package clienttest
