package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

type fault struct {
	name string
	// The field `agents` means that the fault can also happen to hosts that run only a node agent, and not only to
	// racks.
	agents bool
	// The field `alone` is true if the fault may not happen together with another one, because it removes data of a
	// replica or affects every host.
	alone bool
	// needs is what the machine must provide: "network" (network namespaces), "disk" (a disk for each host), or "".
	needs string
	most  time.Duration // the duration of the fault is drawn, up to this value
	// strike begins the fault, and mend ends it.
	strike func(context.Context, *storm, *netlab.Host) error
	mend   func(context.Context, *storm, *netlab.Host) error
}

// faults are the faults from which a trial draws. A fault that must happen alone is drawn less often than the others.
var faults = []fault{
	{name: "kill -9", agents: true, most: 2 * time.Second, strike: killed, mend: revived},
	{name: "stands still (SIGSTOP)", agents: true, most: 6 * time.Second, strike: plain((*netlab.Host).Pause), mend: plainly((*netlab.Host).Resume)},
	{name: "cut off", agents: true, needs: "network", most: 8 * time.Second, strike: plain((*netlab.Host).Cut), mend: plainly((*netlab.Host).Heal)},
	{name: "cut off one way", needs: "network", most: 8 * time.Second, strike: muted, mend: heard},
	{name: "disk full", needs: "disk", most: 6 * time.Second, strike: filled, mend: plainly((*netlab.Host).Drain)},
	{name: "disk hangs", needs: "disk", most: 6 * time.Second, strike: plain((*netlab.Host).Freeze), mend: plainly((*netlab.Host).Thaw)},
	{name: "disk slow", needs: "disk", strike: slowed, mend: revived},
	{name: "power lost", needs: "disk", most: 2 * time.Second, strike: plain((*netlab.Host).LosePower), mend: revived},
	{name: "clock set", most: 8 * time.Second, strike: clockSet, mend: plainly(func(h *netlab.Host) error { return h.SetClock(0) })},
	{name: "kill -9 of all racks", alone: true, most: time.Second, strike: allKilled, mend: allRevived},
	{name: "power of all racks lost", alone: true, needs: "disk", most: time.Second, strike: allDark, mend: allRevived},
	{name: "rolling upgrade", alone: true, strike: upgraded, mend: revived},
	{name: "files damaged", alone: true, strike: damaged, mend: healed(false)},
	{name: "files of two hosts damaged", alone: true, strike: bothDamaged, mend: bothHealed},
	{name: "files of a running host damaged", agents: true, alone: true, most: 4 * time.Second, strike: damagedRunning, mend: startedAnew},
	{name: "disk replaced", alone: true, strike: emptied, mend: healed(true)},
	{name: "older copy put back", alone: true, strike: putBack, mend: healed(true)},
}

// Faults lists the names of the faults that the trials of chaos and storms draw.
func Faults() (names []string) {
	for _, f := range faults {
		names = append(names, f.name)
	}
	return names
}

// plain makes a fault from the function `do`, which disturbs one host. The fault only calls this function.
func plain(do func(*netlab.Host) error) func(context.Context, *storm, *netlab.Host) error {
	return func(_ context.Context, _ *storm, h *netlab.Host) error { return do(h) }
}

func plainly(do func(*netlab.Host) error) func(context.Context, *storm, *netlab.Host) error {
	return func(ctx context.Context, s *storm, h *netlab.Host) error {
		if err := do(h); err != nil {
			return err
		}
		return revived(ctx, s, h)
	}
}

func killed(_ context.Context, _ *storm, h *netlab.Host) error { h.Kill(); return nil }

func revived(ctx context.Context, s *storm, h *netlab.Host) error {
	return s.await(ctx, func(ctx context.Context) error {
		if !h.Runs() {
			if err := h.Start(); err != nil {
				return err
			}
		}
		return h.Await(ctx)
	})
}

// superviseEvery is the time between two checks of the hosts' processes during a wait.
const superviseEvery = 10 * time.Second

// await is called after the faults of hosts are over. It calls the function `look` until it succeeds. A process may
// have ended because of its fault. await starts it again, as a service manager would.
func (s *storm) await(ctx context.Context, look func(context.Context) error) error {
	return within(ctx, healWithin, func(ctx context.Context) error {
		for _, h := range s.Hosts() {
			if !h.Ended() {
				continue
			}
			said := h.Log(max(0, h.LogEnd()-4<<10))
			s.obey(h, said)
			h.Kill()
			if err := h.Start(); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, superviseEvery)
		defer cancel()
		return look(ctx)
	})
}

// obey removes a damaged file of the history, as an operator would. The end of the host's log names the file.
func (s *storm) obey(h *netlab.Host, said string) {
	for word := range strings.FieldsFuncSeq(said, func(r rune) bool { return strings.ContainsRune(" \n\t:\";,", r) }) {
		if strings.HasPrefix(word, h.Dir()) && strings.Contains(word, "/history/") {
			_ = os.Remove(word) // the file may already be removed
			s.refusedByName++
			return
		}
	}
}

// muted begins a fault: everything that the host sends to another rack is lost. This holds for one of the two other
// racks, or for both.
func muted(_ context.Context, s *storm, h *netlab.Host) error {
	s.deaf = slices.DeleteFunc(slices.Clone(s.Racks), func(o *netlab.Host) bool { return o == h })
	if one := s.rng.IntN(len(s.deaf)); s.rng.IntN(2) != 0 {
		s.deaf = s.deaf[one : one+1]
	}
	return embedded.Each(s.deaf, h.Mute)
}

func heard(ctx context.Context, s *storm, h *netlab.Host) error {
	if err := embedded.Each(s.deaf, h.Hear); err != nil {
		return err
	}
	return revived(ctx, s, h)
}

// filled makes a fault: the host's disk is full, or so full that a replica lacks space.
func filled(_ context.Context, s *storm, h *netlab.Host) error {
	return h.Fill(s.rng.Int64N(4) * (64 << 20))
}

// slowed makes a disk hang again and again, each time for at most 0.7 s.
func slowed(ctx context.Context, s *storm, h *netlab.Host) error {
	for range 3 + s.rng.IntN(8) {
		if err := h.Freeze(); err != nil {
			return err
		}
		err := wait(ctx, s.upTo(700*time.Millisecond))
		if thawed := h.Thaw(); thawed != nil || err != nil {
			return fmt.Errorf("a slow disk: %v, %v", err, thawed)
		}
		if err := wait(ctx, s.upTo(200*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// clockSet sets a clock wrong by up to an hour in either direction.
func clockSet(_ context.Context, s *storm, h *netlab.Host) error {
	return h.SetClock(time.Duration(s.rng.Int64N(int64(2*time.Hour))) - time.Hour)
}

func allKilled(_ context.Context, s *storm, _ *netlab.Host) error {
	return embedded.Each(s.Racks, func(h *netlab.Host) error { h.Kill(); return nil })
}

func allDark(_ context.Context, s *storm, _ *netlab.Host) error {
	return embedded.Each(s.Racks, (*netlab.Host).LosePower)
}

func allRevived(ctx context.Context, s *storm, _ *netlab.Host) error {
	if err := embedded.Each(s.Racks, (*netlab.Host).Start); err != nil {
		return err
	}
	return embedded.Each(s.Racks, func(h *netlab.Host) error { return revived(ctx, s, h) })
}

// There are two builds: the older build s.trial.Binary and the newer build s.trial.Newer. upgraded stops every host in
// turn, and starts it again with the build that it did not run before.
func upgraded(ctx context.Context, s *storm, _ *netlab.Host) error {
	build := s.trial.Newer
	if s.newer = !s.newer; !s.newer {
		build = s.trial.Binary
	}
	for _, h := range s.Hosts() {
		if err := h.Stop(); err != nil {
			return err
		}
		h.Run(build)
		if err := revived(ctx, s, h); err != nil {
			return err
		}
		if err := s.well(ctx); err != nil {
			return err
		}
	}
	return nil
}

// damaged damages some files of a stopped host: it flips bits, writes zeroes, cuts or removes files.
func damaged(_ context.Context, s *storm, h *netlab.Host) error {
	return spoil(s, h, "")
}

// bothDamaged damages the auctioneer's files on one host and the bank's files on another. A majority of each group
// still has everything.
func bothDamaged(_ context.Context, s *storm, h *netlab.Host) error {
	others := slices.DeleteFunc(slices.Clone(s.Racks), func(o *netlab.Host) bool { return o == h })
	s.also = others[s.rng.IntN(len(others))]
	if err := spoil(s, h, messages.Auctioneer); err != nil {
		return err
	}
	return spoil(s, s.also, messages.Bank)
}

func bothHealed(ctx context.Context, s *storm, h *netlab.Host) error {
	if err := s.also.Start(); err != nil {
		return err
	}
	if err := healed(false)(ctx, s, h); err != nil {
		return err
	}
	if err := revived(ctx, s, s.also); err != nil {
		return err
	}
	return s.also.Tidy()
}

// spoil kills a host and damages some of the files of its replica of an actor. The actor "" means both replicas.
func spoil(s *storm, h *netlab.Host, actor string) error {
	h.Kill()
	files, err := h.State()
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return !strings.HasPrefix(file, filepath.Join(h.Dir(), actor)) })
	return s.each(h, files, damage)
}

func (s *storm) each(h *netlab.Host, files []string, damage func(string, *rand.Rand) (string, error)) error {
	if len(files) == 0 {
		return nil
	}
	for _, i := range s.rng.Perm(len(files))[:min(len(files), 1+s.rng.IntN(3))] {
		file := files[i]
		what, err := damage(file, s.rng)
		if err != nil {
			return err
		}
		s.trial.log("%s: %s", strings.TrimPrefix(file, h.Dir()+"/"), what)
	}
	return nil
}

// damagedRunning changes parts of some files of a running host: files of its replicas, or of its agent and executor.
func damagedRunning(_ context.Context, s *storm, h *netlab.Host) error {
	s.since = h.LogEnd()
	list := h.State
	if nodes, err := h.NodeState(); err == nil && len(nodes) > 0 && (!slices.Contains(s.Racks, h) || s.rng.IntN(2) == 0) {
		list = h.NodeState
	}
	files, err := list()
	if err != nil {
		return err
	}
	return s.each(h, files, change)
}

// startedAnew restarts a host that runs on damaged files. At its start, the host repairs its data.
func startedAnew(ctx context.Context, s *storm, h *netlab.Host) error {
	if s.rng.IntN(2) == 0 {
		_ = h.Stop() // the host may have found the damage, and ended by itself
	} else {
		h.Kill()
	}
	if said := h.Log(s.since); strings.Contains(said, "damaged") {
		s.noticedRunning++
	}
	return healed(false)(ctx, s, h)
}

// change changes or zeroes a part of a file in place, while a process has the file open.
func change(file string, rng *rand.Rand) (string, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return "was removed meanwhile", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, written))
	if err != nil || len(content) == 0 {
		return "holds nothing", err
	}
	from, to := part(content, rng)
	if rng.IntN(4) == 0 {
		clear(content[from:to])
	} else {
		garble(content[from:to], rng)
	}
	_, err = f.WriteAt(content[from:to], int64(from))
	return fmt.Sprintf("bytes %d to %d changed", from, to), err
}

// written bounds the part of a file that may be damaged, in bytes from its beginning. After this part, a log segment is
// mostly empty.
const written = 4 << 20

func damage(file string, rng *rand.Rand) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil || len(content) == 0 {
		return "removed", os.Remove(file)
	}
	from, to := part(content, rng)
	switch rng.IntN(6) {
	case 0:
		return "removed", os.Remove(file)
	case 1:
		return fmt.Sprintf("cut to %d bytes", from), os.Truncate(file, int64(from))
	case 2:
		to = min(to+4096, len(content))
		clear(content[from:to])
		return fmt.Sprintf("bytes %d to %d zeroed", from, to), os.WriteFile(file, content, 0o600)
	}
	garble(content[from:to], rng)
	return fmt.Sprintf("bytes %d to %d changed", from, to), os.WriteFile(file, content, 0o600)
}

// part draws a range of bytes in the beginning of a file, before the trailing zeroes.
func part(content []byte, rng *rand.Rand) (from, to int) {
	end := len(bytes.TrimRight(content[:min(len(content), written)], "\x00"))
	from = rng.IntN(max(end, 1))
	return from, min(max(end, 1), from+1+rng.IntN(64))
}

func garble(part []byte, rng *rand.Rand) {
	for i := range part {
		part[i] ^= byte(1 + rng.IntN(255))
	}
}

func emptied(_ context.Context, _ *storm, h *netlab.Host) error {
	h.Kill()
	return h.Empty()
}

// putBack lets a host run for some more time, and then replaces its files by earlier copies.
func putBack(ctx context.Context, s *storm, h *netlab.Host) error {
	h.Kill()
	if err := h.Copy(); err != nil {
		return err
	}
	if err := revived(ctx, s, h); err != nil {
		return err
	}
	if err := s.well(ctx); err != nil {
		return err
	}
	_, copied, err := s.has(ctx, h)
	if err != nil {
		return err
	}
	err = within(ctx, healWithin, func(ctx context.Context) error {
		has, _, err := s.has(ctx, h)
		if err == nil && has <= copied {
			err = messages.Errorf(messages.Unavailable, "host %s has no more entries than the copy that was put back", h.Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	h.Kill()
	return h.PutBack()
}

// This method asks the leader of the bank for the numbers of two log entries: the last entry that the host's replica
// has, and the last entry that the leader has applied.
func (s *storm) has(ctx context.Context, h *netlab.Host) (last, applied uint64, err error) {
	reply, err := ask[messages.ReplicasReply](ctx, s.member, messages.Bank, messages.VerbReplicas, messages.Empty{})
	for _, r := range reply.Replicas {
		if r.ID == h.Name {
			last = reply.Applied - min(reply.Applied, r.Behind)
		}
	}
	return last, reply.Applied, err
}

// healed returns a function for a host that has lost data. The function starts the host, and waits until the host has
// all data again. If the argument `lacks` is true, the host must also report the loss. The argument is false for faults
// that damage only some bytes, because the host may never read these bytes.
func healed(lacks bool) func(context.Context, *storm, *netlab.Host) error {
	return func(ctx context.Context, s *storm, h *netlab.Host) error {
		end := h.LogEnd()
		if err := revived(ctx, s, h); err != nil {
			return err
		}
		if err := s.well(ctx); err != nil {
			return err
		}
		if err := h.Tidy(); err != nil {
			return err
		}
		switch said := h.Log(end); {
		case strings.Contains(said, "neither votes nor leads") || strings.Contains(said, "put damaged state aside"):
			s.noticed++
		case lacks:
			s.trial.breaks("host %s of %s started again with fewer entries than before, and its log does not say so", h.Name, s.Name)
		}
		return nil
	}
}

// The method well waits until every replica of both groups answers and votes. In addition, no replica may lack more
// than 1,000 of its leader's entries.
func (s *storm) well(ctx context.Context) error {
	return s.await(ctx, func(ctx context.Context) error {
		for _, actor := range []string{messages.Auctioneer, messages.Bank} {
			reply, err := ask[messages.ReplicasReply](ctx, s.member, actor, messages.VerbReplicas, messages.Empty{})
			if err != nil {
				return err
			}
			for _, r := range reply.Replicas {
				if !r.Votes || !r.Answers || r.Behind > 1000 {
					return messages.Errorf(messages.Unavailable, "replica %s of the %s is not well: %+v", r.ID, actor, r)
				}
			}
		}
		return nil
	})
}
