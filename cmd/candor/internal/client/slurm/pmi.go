package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// pmi is a server through which the ranks of a step find one another. It speaks PMI-1 (MPICH, src/pmi) and PMI-2. Each
// rank has its own socket, whose file descriptor is in PMI_FD, so no other process can send requests. After a barrier,
// all ranks can read the values that were stored before it.
type pmi struct {
	name    string        // name of the step, and of the step's table of values
	aborted chan pmiAbort // gets a value if all ranks must end
	ranks   []*pmiRank

	mu      sync.Mutex
	values  map[string]string
	waiting int // number of ranks that wait at the barrier
}

type pmiRank struct {
	io.ReadWriteCloser
	rank             int
	began, finalized bool
	waits            bool              // the rank waits at the barrier
	fence            map[string]string // PMI-2: the request that is answered when the barrier ends
}

// pmiAbort says why all ranks must end.
type pmiAbort struct {
	rank, code int
	why        string // what the rank did against the protocol; "" means the rank asked for the end
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
	return &pmi{name: name, aborted: make(chan pmiAbort, n), ranks: make([]*pmiRank, n), values: map[string]string{"PMI_process_mapping": mapping + ")"}}
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
	r := &pmiRank{ReadWriteCloser: conn, rank: rank}
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
	var spawn map[string]string // the lines so far of a request for further ranks; its last line is "endcmd"
	for {
		line, err := lines.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			p.fail(r, "sent a line to PMI without an end")
		}
		if err != nil {
			return
		}
		ask := parsePMI(string(line))
		switch {
		case string(line) == "mcmd=spawn\n":
			spawn = map[string]string{"cmd": "spawn"}
			continue
		case spawn != nil && string(line) == "endcmd\n":
			ask, spawn = spawn, nil
		case spawn != nil:
			name, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
			if name == "totspawns" || name == "spawnssofar" {
				spawn[name] = value
			}
			continue
		}
		if ask["cmd"] == "" {
			p.fail(r, "sent a line to PMI that is no request")
			return
		}
		if ask["cmd"] == "init" && ask["pmi_version"] == "2" {
			p.tell(r, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
			p.serve2(r, lines)
			return
		}
		p.mu.Lock()
		answer := p.answer(r, ask)
		if answer != "" {
			p.tell(r, answer+"\n")
		}
		p.mu.Unlock()
	}
}

// pmiPatience is how long a rank may leave its socket full. A correct rank waits for each answer, so its socket never
// becomes full.
const pmiPatience = time.Second

// tell sends text to a rank. If the rank does not read its answers, all ranks end, because tell may hold up the answers
// to the other ranks.
func (p *pmi) tell(r *pmiRank, text string) {
	if err := writeSoon(r.ReadWriteCloser, []byte(text)); err != nil {
		p.fail(r, deafRank)
		_ = r.Close()
	}
}

const deafRank = "does not read the answers of PMI"

// writeSoon writes to a socket. If the socket stays full, it returns an error. A closed socket is no error.
func writeSoon(to io.Writer, b []byte) error {
	if d, is := to.(interface{ SetWriteDeadline(time.Time) error }); is {
		_ = d.SetWriteDeadline(time.Now().Add(pmiPatience))
	}
	if _, err := to.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// fail asks srun to end all ranks, because a rank broke the protocol.
func (p *pmi) fail(r *pmiRank, why string) {
	p.stop(pmiAbort{rank: r.rank, code: 1, why: why})
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
		p.stop(pmiAbort{code: code & 0xff})
		return ""
	case "spawn": // MPI_Comm_spawn_multiple sends several requests, and waits for one answer
		if ask["spawnssofar"] != ask["totspawns"] {
			return ""
		}
		return "cmd=spawn_result rc=-1 msg=srun_starts_no_further_ranks"
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

// stop asks srun to end all ranks of the step.
func (p *pmi) stop(a pmiAbort) {
	select {
	case p.aborted <- a:
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
			p.tell2(each, each.fence, "rc=0;")
			each.fence = nil
			continue
		}
		p.tell(each, "cmd=barrier_out rc=0\n")
	}
}
