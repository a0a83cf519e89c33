// Package users gives each account of a site its own user number on a machine, from a range of numbers that nobody else
// uses on this machine.
//
// The number is the hash of the account's name within the range, or the next free one. So machines without a collision
// give an account the same number. All nodes of the site on the machine keep the numbers in one file. So no two
// accounts have the same number, and an account keeps its number over restarts.
package users
