package mailbox

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

func TestMemoryAppliesInOrder(t *testing.T) {
	m := NewMemory(newTally())
	buffer := []byte("a")
	for i := range 3 {
		buffer[0] = byte('a' + i)
		result, err := m.Propose(context.Background(), buffer)
		if want := (place{string(buffer), uint64(i + 1)}); err != nil || result != want {
			t.Errorf("result %+v, %v; want %+v", result, err, want)
		}
	}
	if s := m.Status(); s.Applied != 3 || s.Commands != 3 || s.Entries != 3 {
		t.Errorf("applied %d, commands %d, entries %d, want 3 each", s.Applied, s.Commands, s.Entries)
	} else if s.Leader != s.ID {
		t.Errorf("%v says that %v leads", s.ID, s.Leader)
	}
}

type keeper struct {
	tally
	kept [][]byte
}

func (k *keeper) Apply(_ uint64, commands [][]byte) ([]any, error) {
	k.kept = append(k.kept, commands...)
	return make([]any, len(commands)), nil
}

func TestMemoryCopiesCommands(t *testing.T) {
	k := &keeper{}
	m := NewMemory(k)
	buffer := []byte("first")
	if _, err := m.Propose(context.Background(), buffer); err != nil {
		t.Fatal(err)
	}
	copy(buffer, "other")
	if string(k.kept[0]) != "first" {
		t.Errorf("the machine has %q", k.kept[0])
	}
}

func TestMemoryLosesOutcomes(t *testing.T) {
	for _, c := range []struct {
		loss    Loss
		err     error
		applied int
	}{{LoseNothing, nil, 1}, {LoseAnswer, ErrUnknown, 1}, {LoseCommand, ErrUnknown, 0}} {
		machine := newTally()
		m := NewMemory(machine)
		m.LoseNext(c.loss)
		if _, err := m.Propose(context.Background(), []byte("x")); !errors.Is(err, c.err) {
			t.Errorf("loss %d: %v", c.loss, err)
		}
		if n := machine.count("x"); n != c.applied {
			t.Errorf("loss %d: applied %d times", c.loss, n)
		}
		if _, err := m.Propose(context.Background(), []byte("y")); err != nil {
			t.Errorf("after loss %d: %v", c.loss, err)
		}
	}
}

func TestMemoryRefuses(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	m := NewMemory(newTally())
	check := func(ctx context.Context, propose, verify error) {
		t.Helper()
		if _, err := m.Propose(ctx, nil); !errors.Is(err, propose) {
			t.Errorf("propose: %v, want %v", err, propose)
		}
		if err := m.Verify(ctx); !errors.Is(err, verify) {
			t.Errorf("verify: %v, want %v", err, verify)
		}
	}
	check(context.Background(), nil, nil)
	check(cancelled, ErrNotLeader, context.Canceled)
	m.Fill(true)
	check(context.Background(), ErrNoSpace, nil)
	m.Fill(false)
	m.Depose()
	check(context.Background(), ErrNotLeader, ErrNotLeader)
	m.Elect()
	check(context.Background(), nil, nil)
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	check(context.Background(), ErrClosed, ErrClosed)
	m.Elect()
	check(context.Background(), ErrClosed, ErrClosed)
}

func TestMemoryKeepsTheLatestLeadership(t *testing.T) {
	m := NewMemory(newTally())
	expect := func(want Leadership) {
		t.Helper()
		if got := <-m.Leadership(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	expect(Leadership{true, 1})
	m.Depose()
	expect(Leadership{false, 2})
	m.Elect()
	m.Elect()
	m.Depose()
	m.Elect()
	expect(Leadership{true, 5})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	expect(Leadership{false, 6})
}

func TestMemoryHasAnImage(t *testing.T) {
	before, after := newTally(), newTally()
	m := NewMemory(before)
	for _, c := range []string{"a", "b", "a"} {
		if _, err := m.Propose(context.Background(), []byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	image, err := m.Image()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Restore(bytes.NewReader(image)); err != nil {
		t.Fatal(err)
	}
	if after.count("a") != 2 || after.count("b") != 1 {
		t.Errorf("restored from the image: %d a, %d b", after.count("a"), after.count("b"))
	}
}

// A command that was lost for now must be applied before the next command, or by Decided.
func TestMemoryDecidesLater(t *testing.T) {
	machine := newTally()
	m := NewMemory(machine)
	for _, later := range []func() error{
		func() error { return m.Decided(context.Background()) },
		func() error { _, err := m.Propose(context.Background(), []byte("next")); return err },
	} {
		before := machine.count("late")
		m.LoseNext(LoseForNow)
		if _, err := m.Propose(context.Background(), []byte("late")); !errors.Is(err, ErrUnknown) || machine.count("late") != before {
			t.Errorf("%v, applied %d times", err, machine.count("late")-before)
		}
		if err := later(); err != nil || machine.count("late") != before+1 {
			t.Errorf("then %v, applied %d times", err, machine.count("late")-before)
		}
	}
}
