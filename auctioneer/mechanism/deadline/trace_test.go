package deadline

import (
	"bufio"
	"compress/gzip"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// record is what is used of a job of a trace in the Standard Workload Format.
type record struct{ submit, runtime, processors int }

// ricc reads records from..to, counted from 1, of the RICC log in the directory
// that the environment variable CANDOR_TRACES names.
func ricc(b *testing.B, from, to int) []record {
	b.Helper()
	dir := os.Getenv("CANDOR_TRACES")
	if dir == "" {
		b.Skip("set CANDOR_TRACES to the directory of the traces")
	}
	f, err := os.Open(filepath.Join(dir, "RICC-2010-2.swf.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	var records []record
	lines := bufio.NewScanner(z)
	for n := 0; n < to && lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 18 || fields[0] == ";" {
			continue
		}
		if n++; n >= from {
			r := record{number(b, fields[1]), number(b, fields[3]), number(b, fields[4])}
			if r.processors <= 0 { // not known: what was asked for
				r.processors = number(b, fields[7])
			}
			records = append(records, r)
		}
	}
	return records
}

func number(b *testing.B, s string) int {
	b.Helper()
	x, err := strconv.Atoi(s)
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// seconds of a unit in the paper's simulation.
const unitSeconds = 600

// split makes the paper's tasks of records: one for each processor, arriving in
// the unit after the submission's, with l the run time in units, rounded up,
// d = a + l + l·Exp(2) and v = l·Exp(50), means 2 and 50. The paper leaves open
// whether the tasks of a record share their draws; alike says they do.
func split(records []record, alike bool, seed uint64) []Task {
	r := rand.New(rand.NewPCG(seed, 0))
	var tasks []Task
	for _, rec := range records {
		l := max(1, (rec.runtime+unitSeconds-1)/unitSeconds)
		var drawn Task
		for k := range rec.processors {
			if k == 0 || !alike {
				a := rec.submit/unitSeconds + 2
				drawn = Task{Arrival: a, Deadline: a + l + int(float64(l)*r.ExpFloat64()*2), Length: l, Value: float64(l) * r.ExpFloat64() * 50}
			}
			tasks = append(tasks, drawn)
		}
	}
	return tasks
}
