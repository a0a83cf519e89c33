package book

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// busy returns a book in which nodes run tasks of jobs. It also returns the grants that each node got.
func busy(b *testing.B, nodes, jobs, tasks int) (*Book, [][]agent.Grant) {
	b.Helper()
	out, ids := New(), []messages.JobID{}
	for i := range jobs {
		s := &Submit{Account: fmt.Sprint("user", i%50), Key: fmt.Sprint(i), Payer: "p", Hold: "h", Held: 1000,
			Spec: &job.JobSpec{Market: "main", Budget: 1000, Stages: []job.Stage{{Name: "map", Class: "map", Tasks: tasks}}}}
		ids = append(ids, out.Apply(&Command{At: 1, Submit: s}).(Receipt).Job)
	}
	out.Apply(&Command{At: 1, Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: 3}}}})
	grants := make([][]agent.Grant, nodes)
	for i := range nodes {
		name := fmt.Sprint("n", i)
		out.Apply(&Command{At: 1, Register: &Register{Node: name, Session: 1, Slots: []job.ClassSlots{{Class: "map", Slots: 8}}}})
		claim := []Claim{{Class: "map", Slots: 8, Jobs: []messages.JobID{ids[i%jobs]}}}
		grants[i] = out.Apply(&Command{At: 2, Exchange: &Exchange{Node: name, Session: 1, Seq: 1, Claims: claim}}).([]agent.Grant)
	}
	return out, grants
}

// BenchmarkExchange ends the eight tasks of a node and claims eight new tasks.
func BenchmarkExchange(b *testing.B) {
	const nodes = 500
	book, grants := busy(b, nodes, 100, 1<<30)
	names := make([]messages.Name, nodes)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		i := k % nodes
		x := &Exchange{Node: names[i], Session: 1, Seq: uint64(k/nodes) + 2,
			Claims: []Claim{{Class: "map", Slots: 8, Jobs: []messages.JobID{messages.JobID(i%100 + 1)}}}}
		for _, g := range grants[i] {
			x.Finished = append(x.Finished, agent.Finished{Attempt: g.Attempt, Outcome: agent.Exited})
		}
		grants[i] = book.Apply(&Command{At: messages.Time(k + 3), Exchange: x}).([]agent.Grant)
		k++
	}
}

func BenchmarkJob(b *testing.B) {
	book, _ := busy(b, 1, 10_000, 1)
	spec := &job.JobSpec{Market: "main", Budget: 1000, Stages: []job.Stage{{Name: "map", Class: "map", Tasks: 1}}}
	b.ReportAllocs()
	k := uint64(0)
	for b.Loop() {
		k++
		at := messages.Time(k)
		id := book.Apply(&Command{At: at, Submit: &Submit{Account: "alice", Key: fmt.Sprint("k", k), Payer: "p", Hold: "h", Held: 1000, Spec: spec}}).(Receipt).Job
		book.Apply(&Command{At: at, Cancel: &Cancel{Job: id, By: "alice"}})
		book.Apply(&Command{At: at, Settle: &Settle{Job: id}})
		for range 2 {
			c := &Confirm{}
			for e := range book.EachEffect {
				c.Effects = append(c.Effects, Confirmation{Effect: e.ID})
			}
			book.Apply(&Command{At: at, Confirm: c})
		}
	}
}

func BenchmarkCapture(b *testing.B) {
	book, _ := busy(b, 500, 10_000, 10)
	b.ReportAllocs()
	for b.Loop() {
		book.Capture()
	}
}

func BenchmarkImage(b *testing.B) {
	book, _ := busy(b, 500, 10_000, 10)
	b.ReportAllocs()
	for b.Loop() {
		var data bytes.Buffer
		if _, err := book.Capture().WriteTo(&data); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(data.Len()))
		if err := New().Restore(&data); err != nil {
			b.Fatal(err)
		}
	}
}
