package runbook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// groups are the names of a host's directories with the logs of a group of replicas.
var groups = []string{"auctioneer", "bank"}

func (r *racks) put(from, to string) {
	r.Helper()
	for _, group := range groups {
		if err := os.RemoveAll(filepath.Join(r.dir, to, group)); err != nil {
			r.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(r.dir, to, group), os.DirFS(filepath.Join(r.dir, from, group))); err != nil {
			r.Fatal(err)
		}
	}
}

// accept writes a file for each group of a host. With this file, the operator tells the host's replica of the group:
// the replica's data has everything that was committed.
func (r *racks) accept(host string) {
	r.Helper()
	for _, group := range groups {
		dir := filepath.Join(r.dir, host, group, host)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "accept"), nil, 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

// replicasPutBack brings two of three hosts back with older copies, while the third is away. When the third returns,
// the group must stop. With the runbook's procedure, it must continue from the third.
func replicasPutBack(t *testing.T, binary string) {
	r := newRacks(t, binary)
	job := func() {
		t.Helper()
		r.do("submit --chdir - --script --budget 10 --wait --timeout 60s job.sh", "Completed")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "job.sh"), []byte("echo hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"rack1", "rack2", "rack3"}
	r.startAll("site.yaml")
	job()
	r.stop(all...)
	for _, host := range all[:2] {
		r.put(host, host+".older")
	}
	r.startAll("site.yaml")
	for range 3 {
		job()
	}
	r.stop(all...)
	for _, host := range all[:2] {
		r.put(host+".older", host)
	}

	r.up(r.start("rack1", "site.yaml"), r.start("rack2", "site.yaml"))
	job() // the two hosts give this job the number of a job that was acknowledged before
	third := r.start("rack3", "site.yaml")
	says := "that were acknowledged"
	if !r.turns(patience, func() bool { return strings.Contains(third.Output.String(), says) }) {
		t.Fatalf("the third does not say %q:\n%s", says, third.Output)
	}
	r.happens(patience, r.hosts["rack1"].Ended, r.hosts["rack2"].Ended)

	r.stop(all...)
	for _, host := range all {
		r.put(host, host+".copy")
	}
	r.accept("rack3")
	for _, host := range all[:2] {
		for _, group := range groups {
			if err := os.RemoveAll(filepath.Join(r.dir, host, group)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.accept("rack1")
	r.up(r.start("rack3", "site.yaml"), r.start("rack1", "site.yaml"))
	r.until("replica list", "auctioneer rack1", "auctioneer rack2 Silent", "bank rack1", "bank rack2 Silent")
	r.up(r.start("rack2", "site.yaml"))
	r.until("replica list", "The auctioneer can lose 1 more replica", "The bank can lose 1 more replica")
	r.do("job 4", "Completed")
	if out := r.try("job 5"); strings.Contains(out, "Completed") {
		t.Errorf("there is a job that only the others had:\n%s", out)
	}
	job()
	r.do("bank verify", "The books verify")
}
