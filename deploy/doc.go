// Package deploy contains the packages that put a site together. Its own tests check that the tree
// follows its architecture.
//
// The package has only tests: nothing of it is in a binary.
package deploy
