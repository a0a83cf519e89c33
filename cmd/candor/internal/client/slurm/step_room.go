package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The steps of a job that run at once divide its processors and GPUs among them: each takes what it needs before it
// starts, and waits while others have it. What a step has is a set of locks on bytes of one file of the job, so that
// the kernel gives it back when the process of srun, or what took its place, has ended, however that ended.
//
// The file begins with the number of the next step. Byte 1000 and on are processors, byte 200000 and on GPUs.
const (
	numberBytes    = 8
	processorsFrom = 1000
	devicesFrom    = 200_000
)

// retryAfter is how long a step waits before it looks again whether others have left something.
const retryAfter = 50 * time.Millisecond

// stepRoom is what a step has of its job.
type stepRoom struct {
	*os.File
	number int   // of the step
	gpus   []int // their positions in the list of the job's; none: the step sees all
}

// stepsFile is the file in which the steps of this task say what they have.
func (c *call) stepsFile() string {
	dir := c.Getenv("TMPDIR")
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, fmt.Sprintf(".candor-steps-%d-%s-%s-%s-%s", os.Getuid(), c.Getenv("CANDOR_JOB"), c.Getenv("CANDOR_STAGE"), c.Getenv("CANDOR_TASK"), c.Getenv("CANDOR_ATTEMPT")))
}

// take waits until a step can have what it needs of so many processors, and of so many GPUs; −1: it needs none to itself.
func (c *call) take(ctx context.Context, w *step, processors, gpus int) (*stepRoom, error) {
	file, err := os.OpenFile(c.stepsFile(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("Unable to create step for job %s: %w", c.Getenv("CANDOR_JOB"), err)
	}
	room := &stepRoom{File: file}
	want := processors
	switch {
	case w.overlap:
		want = 0
	case w.exact || processors == 0:
		want = min(w.ranks*max(w.cpus, 1), processors)
	}
	for waited := false; ; {
		taken, err := room.try(want, processors, gpus, len(deviceList(c.Getenv("CUDA_VISIBLE_DEVICES"), c.Getenv("ROCR_VISIBLE_DEVICES"))))
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

// try takes all that a step needs, or nothing. One step tries at a time.
func (r *stepRoom) try(want, processors, gpus, devices int) (taken bool, err error) {
	if err := r.lock(unix.F_SETLKW, unix.F_WRLCK, 0, numberBytes); err != nil {
		return false, err
	}
	defer func() { _ = r.lock(unix.F_SETLK, unix.F_UNLCK, 0, numberBytes) }()
	if _, some := r.some(processorsFrom, want, processors); !some {
		return false, nil
	}
	if gpus > 0 {
		if r.gpus, taken = r.some(devicesFrom, gpus, devices); !taken {
			_ = r.lock(unix.F_SETLK, unix.F_UNLCK, processorsFrom, 0)
			return false, nil
		}
	}
	var next [numberBytes]byte
	if n, _ := r.ReadAt(next[:], 0); n == numberBytes {
		r.number = int(binary.BigEndian.Uint64(next[:]))
	}
	binary.BigEndian.PutUint64(next[:], uint64(r.number)+1)
	_, err = r.WriteAt(next[:], 0)
	return true, err
}

// some locks so many of the bytes from a position on, or none.
func (r *stepRoom) some(from int64, want, of int) (got []int, ok bool) {
	for i := 0; i < of && len(got) < want; i++ {
		if r.lock(unix.F_SETLK, unix.F_WRLCK, from+int64(i), 1) == nil {
			got = append(got, i)
		}
	}
	if len(got) == want {
		return got, true
	}
	for _, i := range got {
		_ = r.lock(unix.F_SETLK, unix.F_UNLCK, from+int64(i), 1)
	}
	return nil, false
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

// deviceVariables show a rank the GPUs of its step, or those that are its own.
func deviceVariables(ids []string, rank, ranks int, each bool) []string {
	if len(ids) == 0 {
		return nil
	}
	if each {
		n := len(ids) / ranks
		ids = ids[rank*n : (rank+1)*n]
	}
	list := ""
	for i, id := range ids {
		if i > 0 {
			list += ","
		}
		list += id
	}
	return []string{"CUDA_VISIBLE_DEVICES=" + list, "ROCR_VISIBLE_DEVICES=" + list, "SLURM_STEP_GPUS=" + list, "SLURM_GPUS_ON_NODE=" + strconv.Itoa(len(ids))}
}
