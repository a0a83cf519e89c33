package slurm

import (
	"bufio"
	"fmt"
	"net"
	"reflect"
	"sync"
	"testing"
)

type rank2 struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

func (r *rank2) ask(text string) map[string]string {
	if _, err := fmt.Fprintf(r.conn, "%6d%s", len(text), text); err != nil {
		r.t.Error(err)
	}
	answer, err := readPMI2(r.from)
	if err != nil {
		r.t.Error(text, err)
	}
	return answer
}

// Each of three ranks puts a value, and after the fence reads the next rank's value.
func TestPMI2(t *testing.T) {
	p := newPMI([]int{0, 0, 1}, "7.0")
	var all sync.WaitGroup
	for rank := range 3 {
		theirs, ours := net.Pipe()
		p.attach(rank, ours)
		all.Go(func() {
			r := &rank2{t, theirs, bufio.NewReader(theirs)}
			defer theirs.Close()
			if _, err := fmt.Fprintln(theirs, "cmd=init pmi_version=2 pmi_subversion=0"); err != nil {
				t.Error(err)
			}
			if line, err := r.from.ReadString('\n'); err != nil || line != "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n" {
				t.Errorf("%q, %v", line, err)
			}
			next := fmt.Sprint((rank + 1) % 3)
			for _, step := range []struct {
				ask  string
				want map[string]string
			}{
				{"cmd=fullinit;pmijobid=7.0;pmirank=1;threaded=FALSE;", map[string]string{"cmd": "fullinit-response", "rc": "0", "pmi-version": "2", "pmi-subversion": "0",
					"rank": fmt.Sprint(rank), "size": "3", "appnum": "0", "debugged": "FALSE", "pmiverbose": "FALSE"}},
				{"cmd=job-getid;", map[string]string{"cmd": "job-getid-response", "jobid": "7.0", "rc": "0"}},
				{fmt.Sprintf("cmd=kvs-put;key=k%d;value=a;;b=%d;", rank, rank), map[string]string{"cmd": "kvs-put-response", "rc": "0"}},
				{"cmd=kvs-fence;thrid=5;", map[string]string{"cmd": "kvs-fence-response", "thrid": "5", "rc": "0"}},
				{"cmd=kvs-get;jobid=7.0;srcid=-1;key=k" + next + ";", map[string]string{"cmd": "kvs-get-response", "found": "TRUE", "value": "a;b=" + next, "rc": "0"}},
				{"cmd=kvs-get;jobid=7.0;srcid=-1;key=none;", map[string]string{"cmd": "kvs-get-response", "found": "FALSE", "rc": "0"}},
				{"cmd=info-getjobattr;key=PMI_process_mapping;", map[string]string{"cmd": "info-getjobattr-response", "found": "TRUE", "value": "(vector,(0,1,2),(1,1,1))", "rc": "0"}},
				{"cmd=spawn;", map[string]string{"cmd": "spawn-response", "rc": "-1", "errmsg": "srun does not know this command"}},
				{"cmd=finalize;", map[string]string{"cmd": "finalize-response", "rc": "0"}},
			} {
				if got := r.ask(step.ask); !reflect.DeepEqual(got, step.want) {
					t.Errorf("rank %d: %s: %v, want %v", rank, step.ask, got, step.want)
				}
			}
		})
	}
	all.Wait()
	for rank := range 3 {
		if p.left(rank) {
			t.Errorf("rank %d has not finished", rank)
		}
	}
}

// A message without a length, or with a length that is too large, must close the connection.
func TestPMI2RefusesWhatItCannotRead(t *testing.T) {
	for _, text := range []string{"abcdefcmd=finalize;", "999999cmd=", "    -1cmd=finalize;"} {
		p := newPMI([]int{0}, "7.0")
		theirs, ours := net.Pipe()
		p.attach(0, ours)
		from := bufio.NewReader(theirs)
		_, _ = fmt.Fprintln(theirs, "cmd=init pmi_version=2 pmi_subversion=0")
		_, _ = from.ReadString('\n')
		go func() { _, _ = fmt.Fprint(theirs, text) }()
		if answer, err := readPMI2(from); err == nil {
			t.Errorf("%q: %v", text, answer)
		}
		theirs.Close()
	}
}
