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

// pmi is a server through which the ranks of a step find one another. It speaks PMI-1 (MPICH, src/pmi) and PMI-2. Each
// rank has its own socket, whose file descriptor is in PMI_FD, so no other process can send requests. After a barrier,
// all ranks can read the values from before it.
type pmi struct {
	name    string   // name of the step and of its table of values
	aborted chan int // gets the exit code if a rank wants all ranks to end
	ranks   []*pmiRank

	mu      sync.Mutex
	values  map[string]string
	waiting int // number of ranks that wait at the barrier
}

type pmiRank struct {
	io.ReadWriteCloser
	began, finalized bool
	waits            bool              // the rank waits at the barrier
	fence            map[string]string // PMI-2: the request that is answered when the barrier ends
}

// Each rank can store keys and values for the other ranks. These limits on them are the limits of MPICH's own server.
const (
	pmiKey   = 64
	pmiValue = 1024
	pmiKeys  = 1 << 20
)

func newPMI(placeAt []int, name string) *pmi {
	mapping := "(vector"
	for _, e := range processMap(placeAt) {
		mapping += fmt.Sprintf(",(%d,%d,%d)", e[0], e[1], e[2])
	}
	n := len(placeAt)
	return &pmi{name: name, aborted: make(chan int, n), ranks: make([]*pmiRank, n), values: map[string]string{"PMI_process_mapping": mapping + ")"}}
}

// join makes two connected sockets for a rank, and returns the socket that the rank uses.
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

func (p *pmi) attach(rank int, conn io.ReadWriteCloser) {
	r := &pmiRank{ReadWriteCloser: conn}
	p.mu.Lock()
	p.ranks[rank] = r
	p.mu.Unlock()
	go p.serve(r)
}

// left reports whether a rank that has ended began the PMI protocol and did not finish it.
func (p *pmi) left(rank int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.ranks[rank]
	return r.began && !r.finalized
}

// serve answers the requests of a rank until its socket is closed.
func (p *pmi) serve(r *pmiRank) {
	defer r.Close()
	lines := bufio.NewReaderSize(io.LimitReader(r, 1<<32), 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // a line longer than the buffer is an error
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

// parsePMI reads "cmd=put kvsname=a key=b value=c=d". Only the last value may contain spaces.
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

// answer returns the answer to one request, or "" if the answer comes later. The caller holds p.mu.
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

// put stores a value for all ranks. It returns false if there is no room. The caller holds p.mu.
func (p *pmi) put(key, value string) bool {
	if key == "" || len(key) > pmiKey || len(value) > pmiValue || len(p.values) >= pmiKeys {
		return false
	}
	p.values[key] = value
	return true
}

// abort asks srun to end all ranks of the step, with the given exit code.
func (p *pmi) abort(code int) {
	select {
	case p.aborted <- code & 0xff:
	default: // another rank has already asked for it
	}
}

// barrier counts a rank at the barrier, and answers all ranks when the last one is there. The caller holds p.mu.
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
