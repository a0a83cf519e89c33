// Package deploy is what a site is put together from; its own tests hold the tree to its architecture.
//
// The package has tests alone: nothing of it is in a binary.
package deploy
