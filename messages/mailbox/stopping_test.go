package mailbox

import (
	"testing"
	"time"
)

// A connection can bring a leader's notice while this replica closes its files. Such a notice needs a write, and must
// not end the process: a planned stop then looked like a broken disk.
func TestNoticeThatComesAfterTheStop(t *testing.T) {
	c := Config{ID: "1", Dir: t.TempDir(), Local: NewLocal(), Bootstrap: []string{"1"}, SegmentBytes: 64 << 10, Timeout: 100 * time.Millisecond}
	stuck := make(chan error, 1)
	c.faults.stuck = func(err error) { stuck <- err }
	box, err := OpenRaft(c, newTally())
	if err != nil {
		t.Fatal(err)
	}
	m := box.(*replicated)
	for deadline := time.Now().Add(10 * time.Second); m.Status().Leader == "" && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	term := m.raft.CurrentTerm()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.standing.mu.Lock()
	m.standing.sameIn = term // the leader has introduced itself before the stop
	m.standing.mu.Unlock()
	known := m.standing.promises.now()
	a := m.gate.meets("2", hello{Leads: term, Notice: leaderNotice{Known: []diskOf{{ID: "1", Disk: known.Disk, Version: known.Version + 1}}, Vote: true}})
	if a.Same || a.Why != errNotRunning.Error() || a.Report.Disk != known.Disk || a.Report.Level == 0 {
		t.Errorf("the answer is %+v, not that this replica stops, with its report", a)
	}
	m.gate.tellOne("2", "2", term)
	select {
	case err := <-stuck:
		t.Errorf("the process would end: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
}
