// Package packages defines the contents of the .deb and .rpm packages. The package candor has the
// whole program, its man pages, completions for shells, and the systemd units. The package
// candor-client is for machines that only use a site: it has the client instead, and no units.
// Installing a package starts nothing.
package packages
