package netlab

import (
	"fmt"
	"os"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Backup writes a backup of the site into a directory. The host must be running.
func (h *Host) Backup(dir string) error { return h.candor("backup", "--state", h.Dir(), dir) }

// Restore replaces the state of this rack by a backup. The rack must be stopped. Restore all racks of a site before you
// start the first one.
func (h *Host) Restore(dir string) error {
	if h.disk {
		return messages.Errorf(messages.Invalid, "host %s has a disk of its own, which cannot be moved away", h.Name)
	}
	if err := os.RemoveAll(h.Dir()); err != nil {
		return err
	}
	return h.candor("restore", dir, "--state", h.Dir(), "--host", h.Name, "--keys", h.site.keys())
}

func (h *Host) candor(arguments ...string) error {
	output, err := h.site.lab.network.Command(h.site.number, h.number, h.binary, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("candor %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}
