// Package clienttest has functions that the tests of the commands share. A [Site] in memory answers as a test says. The
// package runs command lines against it, and compares outputs with golden files. No program may import the package.
package clienttest
