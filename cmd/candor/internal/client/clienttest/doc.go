// Package clienttest has functions for the tests of the commands. A [Site] in memory answers as a test says. No program
// may import the package.
package clienttest
