// Package packages says what the .deb and .rpm packages have: the program, its man pages,
// completions for shells, and the systemd units. Installing one starts nothing.
package packages
