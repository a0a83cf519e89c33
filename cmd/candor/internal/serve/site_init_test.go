package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// Installing a package of Candor creates /etc/candor, and an operator may have put programs there. Init must leave
// these alone, also after an error, and must not replace a site.
func TestInitUsesADirectoryThatExists(t *testing.T) {
	dir := t.TempDir()
	filter := filepath.Join(dir, "submit-filter")
	if err := os.WriteFile(filter, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, messages.Invalid, "hosts", "site", "init", "west", "--dir", dir, "--hosts", "a=10.0.0.1,a=10.0.0.1,b=10.0.0.2")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("after an error the directory has %v (%v), want only the filter", left, err)
	}
	must(t, "site", "init", "west", "--dir", dir)
	refused(t, messages.Conflict, filepath.Join(dir, siteFileName)+": exists already", "site", "init", "west", "--dir", dir)
	if _, err := os.Stat(filter); err != nil {
		t.Error(err)
	}
}

// A new site must sell processors and memory, because scripts ask for them.
func TestInitSellsProcessorsAndMemory(t *testing.T) {
	for _, c := range []struct {
		p    plan
		want []string
	}{
		{plan{CPUs: 16, memory: 63 << 30}, []string{"classes: [cpu]\n", "- {class: cpu, unit: {cpus: 1, memory: 3G}}\n\n"}},
		{plan{CPUs: 2, memory: 3 << 30}, []string{"- {class: cpu, unit: {cpus: 1, memory: 1536M}}\n"}},
		{plan{CPUs: 1, memory: 1990 << 20}, []string{"- {class: cpu, unit: {cpus: 1, memory: 1984M}}\n"}}, // 1984M, not 2G
		{plan{CPUs: 2}, []string{"- {class: cpu, unit: {cpus: 1}}\n"}},
		{plan{CPUs: 64, GPUs: 4, memory: 510 << 30, Hosts: []plannedHost{{"rack1", "10.0.0.1"}}}, []string{
			"classes: [cpu, gpu]\n", "- {class: gpu, unit: {gpus: 1, cpus: 16, memory: 127G}}\n", "  - {name: rack1}\n"}},
	} {
		c.p.Site, c.p.Dir, c.p.Plain, c.p.Listen, c.p.Leaf = "west", "/etc/candor", true, "127.0.0.1:4222", "127.0.0.1:7422"
		text, err := c.p.config()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%+v: no %q in\n%s", c.p, want, text)
			}
		}
		if len(c.p.Hosts) > 0 {
			continue
		}
		file := filepath.Join(t.TempDir(), siteFileName)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, "config", "check", file)
	}
}
