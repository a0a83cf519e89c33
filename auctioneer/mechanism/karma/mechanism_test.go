package karma

import (
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

const second = 1_000_000 // a second in the unit of messages.Time, which is a microsecond

func newMechanism(t *testing.T) *Mechanism {
	t.Helper()
	m, err := New(market.Market{Name: "main", Classes: []messages.Name{"cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func job(id messages.JobID, account messages.Name, pending, running int) *mechanism.Job {
	return &mechanism.Job{Bid: &mechanism.Bid{Job: id, Account: account, Budget: messages.Credit}, Pending: []int{pending}, Running: []int{running}}
}

func view(now messages.Time, slots int, jobs ...*mechanism.Job) *mechanism.View {
	return &mechanism.View{Now: now, Classes: []mechanism.Class{{Name: "cpu", Slots: slots}}, Jobs: jobs}
}

func karmaOf(m *Mechanism, name messages.Name) float64 {
	return float64(m.ledgers[0].find(name).Karma) / One
}

// ada is away while bob holds all slots for ten quanta. Then both ask for all slots, and ada must get more.
func TestAnAccountThatGaveUpItsShareGoesFirst(t *testing.T) {
	m := newMechanism(t)
	m.Allocate(view(second, 4, job(1, "ada", 1, 0), job(2, "bob", 4, 0)))
	m.Allocate(view(2*second, 4, job(2, "bob", 0, 4)))
	a := m.Allocate(view(601*second, 4, job(2, "bob", 4, 0), job(3, "ada", 4, 0)))
	// In each of the ten quanta, each account gets one karma for free. Bob pays three karma, and ada gets one of them.
	// So ada gains 20 karma, and bob loses 20.
	if ada, bob := karmaOf(m, "ada"), karmaOf(m, "bob"); ada != 1_000_020 || bob != 999_980 {
		t.Errorf("ada has %v, bob %v", ada, bob)
	}
	if a.Weights[0][0] != 0.25 || a.Weights[1][0] != 0.75 {
		t.Errorf("%v", a.Weights)
	}
	if a.Wake != 661*second {
		t.Errorf("wakes at %v", a.Wake)
	}
	e := m.Explain(view(601*second, 4, job(2, "bob", 4, 0), job(3, "ada", 4, 0)), job(3, "ada", 4, 0))
	if !strings.Contains(e.Message, "ada is given 3 of 4 slots of cpu, holds 0, and has 1000020 karma, where the mean is 1000000") {
		t.Errorf("%+v", e)
	}
}

// An account holds all slots, but gives them up for a second around the end of each quantum. It must still pay for the
// slots.
func TestToBeAwayAtTheEndsOfQuantaDoesNotPay(t *testing.T) {
	karma := func(dodges bool) float64 {
		m := newMechanism(t)
		m.Allocate(view(second, 4, job(1, "ada", 4, 0), job(2, "bob", 4, 0)))
		for k := range messages.Time(60) {
			end := second + 60*second*k
			m.Allocate(view(end, 4, job(2, "bob", 4, 0)))
			m.Allocate(view(end+second, 4, job(1, "ada", 0, 4), job(2, "bob", 4, 0)))
			if dodges {
				m.Allocate(view(end+59*second, 4, job(2, "bob", 0, 4)))
			}
		}
		return karmaOf(m, "ada")
	}
	stays, dodges := karma(false), karma(true)
	if stays > 1_000_000-59 || dodges > stays+59*4.0*3/60 {
		t.Errorf("ada has %v karma, %v if it is away at the ends of quanta", stays, dodges)
	}
}

// A site chooses the names of its users, so it could invent many. All users of another site must therefore be one
// member.
func TestAPeerIsOneMember(t *testing.T) {
	m := newMechanism(t)
	a := m.Allocate(view(second, 8, job(1, "ada", 9, 0), job(2, "a@east", 9, 0), job(3, "b@east", 9, 0), job(4, "b@east", 9, 0), job(5, "c@east", 9, 0)))
	for i, want := range []float64{0.5, 1.0 / 6, 1.0 / 12, 1.0 / 12, 1.0 / 6} {
		if got := a.Weights[i][0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("job %d has %v, want %v", i+1, got, want)
		}
	}
	if n := len(m.ledgers[0].Members); n != 2 {
		t.Errorf("%d members", n)
	}
}

// A mechanism made from the notes of another one must decide the same.
func TestANewLeaderKnowsTheKarma(t *testing.T) {
	m := newMechanism(t)
	m.Allocate(view(second, 4, job(1, "ada-with-a-long-name", 1, 0), job(2, "bob", 4, 4)))
	if notes, _ := m.Notes(1); notes != nil {
		t.Errorf("notes within a quantum: %v", notes)
	}
	m.Allocate(view(300*second, 4, job(2, "bob", 4, 4)))
	notes, _ := m.Notes(1)
	if m.Saved(); len(notes) != 1 || m.changed {
		t.Fatalf("%v", notes)
	}
	next := newMechanism(t)
	next.Recall(notes, nil, nil)
	both := view(400*second, 4, job(2, "bob", 4, 0), job(3, "ada-with-a-long-name", 4, 0))
	a, b := m.Allocate(both), next.Allocate(both)
	// the note does not have the slot time that the accounts got after it was saved, so the weights may differ a little
	if math.Abs(a.Weights[0][0]-b.Weights[0][0]) > 1e-9 || len(next.ledgers[0].Members) != 2 {
		t.Errorf("%v and %v", a.Weights, b.Weights)
	}
	for cut := range notes[0].Numbers {
		broken := newMechanism(t)
		broken.Recall([]mechanism.Note{{Numbers: notes[0].Numbers[:cut]}}, nil, nil)
		if len(broken.ledgers[0].Members) != 0 {
			t.Errorf("a note of %d numbers is taken for whole", cut)
		}
	}
}

func TestMembersLeaveAWeekAfterTheirLastJob(t *testing.T) {
	m := newMechanism(t)
	m.Allocate(view(second, 4, job(1, "ada", 1, 0)))
	m.Allocate(view(2*second, 4))
	m.Allocate(view(6*86400*second, 4, job(2, "bob", 1, 0)))
	if len(m.ledgers[0].Members) != 2 {
		t.Error("ada left too early")
	}
	m.Allocate(view(8*86400*second, 4, job(2, "bob", 1, 0)))
	if len(m.ledgers[0].Members) != 1 {
		t.Error("ada is still there")
	}
}

func TestDocument(t *testing.T) {
	out, err := SolveDocument([]byte(`{"alpha":0.5,"slots":4,"karma":10,"demands":[[0,4],[4,4]]}`))
	if err != nil || out.(answer).Given[1][0] != 3 || out.(answer).Karma[1][1] != 9 {
		t.Errorf("%v %v", out, err)
	}
	for _, bad := range []string{`{"alpha":2}`, `{"slots":-1}`, `{"karma":-1}`, `{"demands":[[1],[1,2]]}`, `{"demands":[[-1]]}`, `{"x":1}`} {
		if _, err := SolveDocument([]byte(bad)); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := New(market.Market{Slot: 5}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a quantum of 5 ns: %v", err)
	}
}
