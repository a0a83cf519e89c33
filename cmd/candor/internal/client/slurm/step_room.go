package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Steps of a job that run at the same time divide its processors and GPUs. A step waits until it can take what it
// needs. For each processor and GPU there is a lock on one byte of a file of the job. The kernel frees the locks when
// srun's process ends for any reason, also after an exec of another program.
//
// The file begins with the number of the next step. Each node of the job has a range of bytes for its processors, and
// one for its GPUs. Steps that are started on another node than the first use a file on that node, and do not know the
// steps of the first node.
const (
	numberBytes    = 8
	processorsFrom = 1 << 20
	devicesFrom    = 1 << 40
	ofNode         = 1 << 20
)

// retryAfter is the pause before a step looks again for free processors and GPUs.
const retryAfter = 50 * time.Millisecond

type stepRoom struct {
	*os.File
}

// stepsFile returns the path of the file with the locks of this task's steps.
func (c *call) stepsFile() string {
	dir := c.Getenv("TMPDIR")
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, fmt.Sprintf(".candor-steps-%d-%s-%s-%s-%s", os.Getuid(), c.Getenv("CANDOR_JOB"), c.Getenv("CANDOR_STAGE"), c.Getenv("CANDOR_TASK"), c.Getenv("CANDOR_ATTEMPT")))
}

// take waits until it can lock the processors and GPUs that the runs of a step need.
func (c *call) take(ctx context.Context, runs []*run) (*stepRoom, error) {
	file, err := os.OpenFile(c.stepsFile(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("Unable to create step for job %s: %w", c.Getenv("CANDOR_JOB"), err)
	}
	room := &stepRoom{File: file}
	all := c.nodesOfJob()
	soon, err := strconv.Atoi(cmp.Or(runs[0].w.soon, "0"))
	if err != nil || soon < 0 {
		file.Close()
		return nil, fmt.Errorf("--immediate %q: write a number of seconds", runs[0].w.soon)
	}
	began := c.Now()
	for waited := false; ; {
		taken, err := room.try(all, runs)
		switch {
		case err != nil:
			file.Close()
			return nil, fmt.Errorf("Unable to create step for job %s: %w", c.Getenv("CANDOR_JOB"), err)
		case taken && waited:
			c.Tell("srun: Step created for job " + c.Getenv("CANDOR_JOB"))
			return room, nil
		case taken:
			return room, nil
		case runs[0].w.soon != "" && c.Now().Sub(began) >= time.Duration(soon)*time.Second:
			file.Close()
			return nil, fmt.Errorf("Unable to create step for job %s: Requested nodes are busy", c.Getenv("CANDOR_JOB"))
		case !waited:
			c.Tell("srun: Job " + c.Getenv("CANDOR_JOB") + " step creation temporarily disabled, retrying (Requested nodes are busy)")
			waited = true
		}
		if err := c.Pause(ctx, retryAfter); err != nil {
			file.Close()
			return nil, err
		}
	}
}

// wants returns the number of processors that a step takes on a node for a number of ranks.
func (w *step) wants(ranks, processors int) int {
	switch {
	case w.overlap:
		return 0
	case w.exact:
		return min(ranks*max(w.cpus, 1), processors)
	}
	return processors
}

// try takes all processors and GPUs that a step needs, or none of them. Only one step of the job tries at a time.
func (r *stepRoom) try(all []string, runs []*run) (taken bool, err error) {
	if err := r.lock(unix.F_SETLKW, unix.F_WRLCK, 0, numberBytes); err != nil {
		return false, err
	}
	defer func() { _ = r.lock(unix.F_SETLK, unix.F_UNLCK, 0, numberBytes) }()
	for i, of := range runs {
		w, gpus := of.w, of.gpusOfRanks
		if taken, err = r.spread(w, all, of.may, of.share, of.processors, gpus, of.gpus); !taken && err == nil && w.fills() && gpus <= 0 && i == 0 {
			taken, err = r.fill(w, all, of.may, of.processors, gpus)
		}
		if !taken { // the caller also frees the locks of the runs before this one
			return false, err
		}
		w.deal()
	}
	var next [numberBytes]byte
	number := uint64(0)
	if n, _ := r.ReadAt(next[:], 0); n == numberBytes {
		number = binary.BigEndian.Uint64(next[:])
	}
	for _, of := range runs {
		of.w.number = int(number)
	}
	binary.BigEndian.PutUint64(next[:], number+1)
	_, err = r.WriteAt(next[:], 0)
	return true, err
}

// spread divides the ranks of a step among a number of nodes. The numbers of ranks on two nodes differ by at most one
// rank, or by at most one plane if the step has planes.
func (r *stepRoom) spread(w *step, all []string, may []int, nodes, processors, gpus, devices int) (taken bool, err error) {
	w.places = nil
	for _, i := range may {
		if len(w.places) == nodes {
			break
		}
		p := place{node: all[i], index: i, count: w.shareOf(len(w.places), nodes)}
		at := int64(i) * ofNode
		cpus, some := r.some(processorsFrom+at, w.wants(p.count, processors), processors)
		if some && gpus >= 0 {
			if p.gpus, some = r.some(devicesFrom+at, w.devicesAt(len(w.places), nodes, gpus), devices); !some {
				r.free(processorsFrom+at, cpus)
			}
		}
		if some {
			w.places = append(w.places, p)
		}
	}
	if len(w.places) < nodes {
		return false, r.lock(unix.F_SETLK, unix.F_UNLCK, processorsFrom, 0)
	}
	return true, nil
}

// devicesAt returns the number of GPUs that the step takes on node k of its `nodes` nodes. `most` is the largest number
// on a node.
func (w *step) devicesAt(k, nodes, most int) int {
	switch {
	case w.devices == 0:
		return most
	case k < w.devices%nodes:
		return w.devices/nodes + 1
	}
	return w.devices / nodes
}

// fills reports whether the ranks of the step fill the processors that other steps leave free, node after node.
// Otherwise the options of the step say how many ranks each node gets.
func (w *step) fills() bool { return w.exact && w.nodes == "" && w.on == "" && w.perNode == 0 }

// fill places the ranks of a step on free processors, node after node, until all ranks have their processors. Example:
// each rank needs 1 processor, the first node has 1 free processor, and the second has 2. Then the first node gets 1
// rank, and the second gets 2.
func (r *stepRoom) fill(w *step, all []string, may []int, processors, gpus int) (taken bool, err error) {
	w.places = nil
	each, placed := max(w.cpus, 1), 0
	for _, i := range may {
		p, from := place{node: all[i], index: i}, processorsFrom+int64(i)*ofNode
		for placed < w.ranks {
			if _, some := r.some(from, each, processors); !some {
				break
			}
			p.count, placed = p.count+1, placed+1
		}
		if p.count > 0 {
			if gpus == 0 {
				p.gpus = []int{}
			}
			w.places = append(w.places, p)
		}
	}
	if placed < w.ranks {
		return false, r.lock(unix.F_SETLK, unix.F_UNLCK, processorsFrom, 0)
	}
	return true, nil
}

// The method `some` locks `want` free bytes in a range of the file. The range begins at the position `from` and has
// `of` bytes. The result `got` has the positions of the locked bytes within the range. If fewer bytes are free, the
// method locks none and returns false.
func (r *stepRoom) some(from int64, want, of int) (got []int, ok bool) {
	got = []int{}
	for i := 0; i < of && len(got) < want; i++ {
		if r.lock(unix.F_SETLK, unix.F_WRLCK, from+int64(i), 1) == nil {
			got = append(got, i)
		}
	}
	if len(got) == want {
		return got, true
	}
	r.free(from, got)
	return nil, false
}

// free unlocks single bytes of the file. Each byte stands for a processor or GPU. The argument `got` lists the
// positions of the bytes, counted from the byte `from`.
func (r *stepRoom) free(from int64, got []int) {
	for _, i := range got {
		_ = r.lock(unix.F_SETLK, unix.F_UNLCK, from+int64(i), 1)
	}
}

func (r *stepRoom) lock(how, kind int, from, bytes int64) error {
	for {
		err := unix.FcntlFlock(r.Fd(), how, &unix.Flock_t{Type: int16(kind), Start: from, Len: bytes})
		if err != unix.EINTR {
			return err
		}
	}
}

// stay prepares an exec: the file with the locks stays open in the program that replaces this one, so the locks are
// kept.
func (r *stepRoom) stay() error {
	_, err := unix.FcntlInt(r.Fd(), unix.F_SETFD, 0)
	return err
}

// deviceVariables returns the variables that name GPUs for a rank. They name all GPUs that the step has on the rank's
// node. If the step asked for GPUs for each rank, they name only the GPUs of this rank. The function `environ` returns
// the job's variables on the node.
func (w *step) deviceVariables(p *place, rank int, environ func(string) string) []string {
	if p.gpus == nil {
		return nil
	}
	all := deviceList(environ("CUDA_VISIBLE_DEVICES"), environ("ROCR_VISIBLE_DEVICES"))
	var ids []string
	for _, i := range p.gpus {
		if i < len(all) {
			ids = append(ids, all[i])
		}
	}
	if w.gpusPerRank != "" {
		n, at := len(ids)/p.count, slices.Index(p.ranks, rank)
		ids = ids[at*n : (at+1)*n]
	}
	list := strings.Join(ids, ",")
	return []string{"CUDA_VISIBLE_DEVICES=" + list, "ROCR_VISIBLE_DEVICES=" + list, "SLURM_STEP_GPUS=" + list, "SLURM_GPUS_ON_NODE=" + strconv.Itoa(len(ids))}
}
