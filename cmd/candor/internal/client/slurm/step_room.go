package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Steps of a job that run at the same time divide its processors and GPUs among them. A step takes what it needs before it
// starts, and waits while others have it. Each processor and GPU is a lock on a byte of one file of the job. So the kernel
// frees them when the process of srun, or the program that it became by exec, has ended for any reason.
//
// The file begins with the number of the next step. Each node of the job has a range of bytes for its processors, and one for
// its GPUs. Steps that are started on another node than the first of the job use a file on that node, and do not know about
// the steps of this one.
const (
	numberBytes    = 8
	processorsFrom = 1 << 20
	devicesFrom    = 1 << 40
	ofNode         = 1 << 20
)

// retryAfter is how long a step waits before it looks again whether others have left something.
const retryAfter = 50 * time.Millisecond

// stepRoom is the processors and GPUs that a step has of its job.
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

// take waits until a step can have what it needs: a number of nodes among the ones that it may use, and on each of them a
// number of processors and GPUs. −1: it needs none for itself.
func (c *call) take(ctx context.Context, w *step, may []int, nodes, processors, gpus int) (*stepRoom, error) {
	file, err := os.OpenFile(c.stepsFile(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("Unable to create step for job %s: %w", c.Getenv("CANDOR_JOB"), err)
	}
	room := &stepRoom{File: file}
	devices := len(deviceList(c.Getenv("CUDA_VISIBLE_DEVICES"), c.Getenv("ROCR_VISIBLE_DEVICES")))
	all := c.nodesOfJob()
	for waited := false; ; {
		taken, err := room.try(w, all, may, nodes, processors, gpus, devices)
		switch {
		case err != nil:
			file.Close()
			return nil, fmt.Errorf("Unable to create step for job %s: %w", c.Getenv("CANDOR_JOB"), err)
		case taken && waited:
			c.Tell("srun: Step created for job " + c.Getenv("CANDOR_JOB"))
			return room, nil
		case taken:
			return room, nil
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

// wants returns how many processors a step takes on a node. ranks is the number of its ranks there.
func (w *step) wants(ranks, processors int) int {
	switch {
	case w.overlap:
		return 0
	case w.exact:
		return min(ranks*max(w.cpus, 1), processors)
	}
	return processors
}

// try takes all that a step needs, or nothing. One step tries at a time.
func (r *stepRoom) try(w *step, all []string, may []int, nodes, processors, gpus, devices int) (taken bool, err error) {
	if err := r.lock(unix.F_SETLKW, unix.F_WRLCK, 0, numberBytes); err != nil {
		return false, err
	}
	defer func() { _ = r.lock(unix.F_SETLK, unix.F_UNLCK, 0, numberBytes) }()
	if taken, err = r.spread(w, all, may, nodes, processors, gpus, devices); !taken && err == nil && w.fills() && gpus <= 0 {
		taken, err = r.fill(w, all, may, processors)
	}
	if !taken {
		return false, err
	}
	var next [numberBytes]byte
	if n, _ := r.ReadAt(next[:], 0); n == numberBytes {
		w.number = int(binary.BigEndian.Uint64(next[:]))
	}
	binary.BigEndian.PutUint64(next[:], uint64(w.number)+1)
	_, err = r.WriteAt(next[:], 0)
	return true, err
}

// spread places the ranks of a step on so many nodes, as many on each, or one less.
func (r *stepRoom) spread(w *step, all []string, may []int, nodes, processors, gpus, devices int) (taken bool, err error) {
	w.places = nil
	first := 0
	for _, i := range may {
		if len(w.places) == nodes {
			break
		}
		p := place{node: all[i], index: i, first: first, count: w.ranks / nodes}
		if len(w.places) < w.ranks%nodes {
			p.count++
		}
		at := int64(i) * ofNode
		cpus, some := r.some(processorsFrom+at, w.wants(p.count, processors), processors)
		if some && gpus > 0 {
			if p.gpus, some = r.some(devicesFrom+at, gpus, devices); !some {
				r.free(processorsFrom+at, cpus)
			}
		}
		if some {
			w.places, first = append(w.places, p), first+p.count
		}
	}
	if len(w.places) < nodes {
		return false, r.lock(unix.F_SETLK, unix.F_UNLCK, processorsFrom, 0)
	}
	return true, nil
}

// fills reports whether a step may have as many ranks on each node as other steps have left room for.
func (w *step) fills() bool { return w.exact && w.nodes == "" && w.on == "" && w.perNode == 0 }

// fill places the ranks of a step where there is room. Example: with 1 and 2 processors free on two nodes, 3 ranks
// are 1 and 2.
func (r *stepRoom) fill(w *step, all []string, may []int, processors int) (taken bool, err error) {
	w.places = nil
	each, first := max(w.cpus, 1), 0
	for _, i := range may {
		p, from := place{node: all[i], index: i, first: first}, processorsFrom+int64(i)*ofNode
		for first < w.ranks {
			if _, some := r.some(from, each, processors); !some {
				break
			}
			p.count, first = p.count+1, first+1
		}
		if p.count > 0 {
			w.places = append(w.places, p)
		}
	}
	if first < w.ranks {
		return false, r.lock(unix.F_SETLK, unix.F_UNLCK, processorsFrom, 0)
	}
	return true, nil
}

// some locks want of the bytes from a position on, or none.
func (r *stepRoom) some(from int64, want, of int) (got []int, ok bool) {
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

// free gives bytes from a position on back.
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

// stay has the locks last as long as a program that takes the place of this one.
func (r *stepRoom) stay() error {
	_, err := unix.FcntlInt(r.Fd(), unix.F_SETFD, 0)
	return err
}

// deviceVariables returns variables that show a rank the GPUs of its step on its node, or only its own. environ finds the GPUs that the job has
// there.
func (w *step) deviceVariables(p *place, rank int, environ func(string) string) []string {
	if len(p.gpus) == 0 {
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
		n, at := len(ids)/p.count, rank-p.first
		ids = ids[at*n : (at+1)*n]
	}
	list := strings.Join(ids, ",")
	return []string{"CUDA_VISIBLE_DEVICES=" + list, "ROCR_VISIBLE_DEVICES=" + list, "SLURM_STEP_GPUS=" + list, "SLURM_GPUS_ON_NODE=" + strconv.Itoa(len(ids))}
}
