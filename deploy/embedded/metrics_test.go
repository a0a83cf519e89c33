package embedded

import "testing"

// Connections of one process share a registry in which each name has one counter.
func TestANameHasOneCounter(t *testing.T) {
	m := newMetrics(true)
	one, err := m.counter("candor_bus_errors_total", "Errors.")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := m.counter("candor_bus_errors_total", "Errors."); err != nil || other != one {
		t.Errorf("a second connection counts apart: %v", err)
	}
	if _, err := m.counter("candor_bus_errors_total", "Other words."); err == nil {
		t.Error("a name has two meanings")
	}
}
