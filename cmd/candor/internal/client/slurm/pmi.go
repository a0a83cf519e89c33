package slurm

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// pmi helps the ranks of a step to find one another, by the protocols PMI-1 (MPICH, src/pmi) and PMI-2. Each rank has its own socket,
// PMI_FD, so no other process can ask. Values that a rank puts can be read by all ranks after the next barrier.
type pmi struct {
	name    string   // of the step, and of its table of values
	aborted chan int // the exit code that a rank wants for all
	ranks   []*pmiRank

	mu      sync.Mutex
	values  map[string]string
	waiting int // ranks at the barrier
}

// pmiRank is the server's end of one rank.
type pmiRank struct {
	io.ReadWriteCloser
	began, finalized bool
	waits            bool              // at the barrier
	fence            map[string]string // the question that the end of the barrier answers, in PMI-2
}

// Bounds on what a rank may put, as MPICH's own server has them.
const (
	pmiKey   = 64
	pmiValue = 1024
	pmiKeys  = 1 << 20
)

func newPMI(places []place, name string) *pmi {
	n, mapping := 0, "(vector"
	for i := 0; i < len(places); { // one entry for consecutive nodes with the same number of ranks: (first node, nodes, ranks of each)
		same := 1
		for i+same < len(places) && places[i+same].count == places[i].count {
			same++
		}
		mapping += fmt.Sprintf(",(%d,%d,%d)", i, same, places[i].count)
		n, i = n+same*places[i].count, i+same
	}
	return &pmi{name: name, aborted: make(chan int, n), ranks: make([]*pmiRank, n), values: map[string]string{"PMI_process_mapping": mapping + ")"}}
}

// join makes the socket of a rank, and returns the rank's end.
func (p *pmi) join(rank int) (theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, err
	}
	p.attach(rank, os.NewFile(uintptr(fds[0]), "pmi"))
	return os.NewFile(uintptr(fds[1]), "pmi"), nil
}

// attach has the server answer a rank.
func (p *pmi) attach(rank int, conn io.ReadWriteCloser) {
	r := &pmiRank{ReadWriteCloser: conn}
	p.mu.Lock()
	p.ranks[rank] = r
	p.mu.Unlock()
	go p.serve(r)
}

// left reports whether a rank that has ended began to speak with the others and did not finish.
func (p *pmi) left(rank int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.ranks[rank]
	return r.began && !r.finalized
}

// serve answers a rank until it has closed its socket.
func (p *pmi) serve(r *pmiRank) {
	defer r.Close()
	lines := bufio.NewReaderSize(io.LimitReader(r, 1<<32), 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // a line that is longer than the buffer is an error
		if err != nil {
			return
		}
		ask := parsePMI(string(line))
		if ask["cmd"] == "init" && ask["pmi_version"] == "2" {
			_, _ = io.WriteString(r, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
			p.serve2(r, lines)
			return
		}
		p.mu.Lock()
		answer := p.answer(r, ask)
		if answer != "" {
			_, _ = io.WriteString(r, answer+"\n")
		}
		p.mu.Unlock()
	}
}

// parsePMI reads "cmd=put kvsname=a key=b value=c=d". A value has no spaces but the last one, which may.
func parsePMI(line string) map[string]string {
	words := map[string]string{}
	for line = strings.TrimSpace(line); line != ""; {
		name, rest, ok := strings.Cut(line, "=")
		if !ok {
			break
		}
		value, next, _ := strings.Cut(rest, " ")
		if name == "value" {
			value, next = rest, ""
		}
		words[name], line = value, strings.TrimLeft(next, " ")
	}
	return words
}

// answer returns the answer to one line; "": there is none yet. The caller holds p.mu.
func (p *pmi) answer(r *pmiRank, ask map[string]string) string {
	switch ask["cmd"] {
	case "init":
		if ask["pmi_version"] != "1" {
			return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1"
		}
		r.began = true
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
	case "get_maxes":
		return fmt.Sprintf("cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d rc=0", pmiKey, pmiValue)
	case "get_appnum":
		return "cmd=appnum appnum=0 rc=0"
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=" + p.name + " rc=0"
	case "get_universe_size":
		return fmt.Sprintf("cmd=universe_size size=%d rc=0", len(p.ranks))
	case "put":
		if !p.put(ask["key"], ask["value"]) {
			return "cmd=put_result rc=-1 msg=too_long"
		}
		return "cmd=put_result rc=0 msg=success"
	case "get":
		value, is := p.values[ask["key"]]
		if !is {
			return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
		}
		return "cmd=get_result rc=0 msg=success value=" + value
	case "barrier_in":
		p.barrier(r)
		return ""
	case "finalize":
		r.finalized = true
		return "cmd=finalize_ack rc=0"
	case "abort":
		code, err := strconv.Atoi(ask["exitcode"])
		if err != nil || code&0xff == 0 {
			code = 1
		}
		p.abort(code)
		return ""
	}
	return "cmd=" + ask["cmd"] + "_result rc=-1 msg=unknown_command"
}

// put keeps a value for all ranks, and reports whether it fits. p.mu is held.
func (p *pmi) put(key, value string) bool {
	if key == "" || len(key) > pmiKey || len(value) > pmiValue || len(p.values) >= pmiKeys {
		return false
	}
	p.values[key] = value
	return true
}

// abort ends all ranks with a code.
func (p *pmi) abort(code int) {
	select {
	case p.aborted <- code & 0xff:
	default: // it was said often enough
	}
}

// barrier lets all ranks go on when the last one has come. p.mu is held.
func (p *pmi) barrier(r *pmiRank) {
	if !r.waits {
		r.waits, p.waiting = true, p.waiting+1
	}
	if p.waiting < len(p.ranks) {
		return
	}
	p.waiting = 0
	for _, each := range p.ranks {
		each.waits = false
		if each.fence != nil {
			each.answer2(each.fence, "rc=0;")
			each.fence = nil
			continue
		}
		_, _ = io.WriteString(each, "cmd=barrier_out rc=0\n")
	}
}
