// Package packages says what the .deb and .rpm packages have. The package candor has the
// whole program, its man pages, completions for shells, and the systemd units; the package
// candor-client, for machines that only use a site, has the client in its place and no
// units. Installing one starts nothing.
package packages
