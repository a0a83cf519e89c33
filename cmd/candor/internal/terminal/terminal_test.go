package terminal

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTableAlignsAndLeavesOutWhatIsEmpty(t *testing.T) {
	table := NewTable("NAME|>N|NOTHING|STATE")
	table.Row("ä", "1", "", Style{Colour: true}.Green("Up"))
	table.Row("longer", "12345", "", "")
	var b bytes.Buffer
	table.Write(&b, Style{}, "> ")
	want := "> NAME        N  STATE\n> ä           1  \x1b[32mUp\x1b[0m\n> longer  12345\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}

func TestSpan(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "<1ms", time.Millisecond: "1ms", 999*time.Millisecond + 999*time.Microsecond: "999ms",
		time.Second: "1.0s", 9990 * time.Millisecond: "9.9s", 10 * time.Second: "10s", time.Minute - 1: "59s",
		time.Minute: "1m00s", time.Hour - 1: "59m59s", time.Hour: "1h00m", day - 1: "23h59m", day: "1d00h", 500*day + 5*time.Hour: "500d05h",
		-90 * time.Second: "-1m30s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0%", 0.004: "0.4%", 0.0995: "10%", 0.5: "50%", 1: "100%"} {
		if got := Percent(x); got != want {
			t.Errorf("%v: got %s, want %s", x, got, want)
		}
	}
	if Plural(1, "task") != "1 task" || Plural(1200, "task") != "1,200 tasks" || Plural(0, "task") != "0 tasks" {
		t.Error("plural")
	}
}

// A bar always has the requested width, and grows with the fraction.
func TestBar(t *testing.T) {
	for f, want := range map[float64]string{-1: "░░░░", 0: "░░░░", 0.5: "██░░", 0.53125: "██▏░", 1: "████", 7: "████"} {
		if got := Bar(f, 4); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 40).Draw(t, "width")
		a := rapid.Float64Range(0, 1).Draw(t, "a")
		b := rapid.Float64Range(a, 1).Draw(t, "b")
		if Width(Bar(a, width)) != width || strings.Count(Bar(a, width), "█") > strings.Count(Bar(b, width), "█") {
			t.Fatalf("%v %s, %v %s", a, Bar(a, width), b, Bar(b, width))
		}
	})
}

func TestClipKeepsToTheWidth(t *testing.T) {
	red := Style{Colour: true}.Red
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"short", 10, "short"}, {"exactly", 7, "exactly"}, {"too long", 5, "too …"},
		{red("too long"), 5, "\x1b[31mtoo \x1b[0m…"}, {red("äöü"), 3, red("äöü")}, {"ab", 1, "…"},
	} {
		if got := Clip(c.line, c.width); got != c.want {
			t.Errorf("%q to %d: got %q, want %q", c.line, c.width, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.String().Draw(t, "line")
		width := rapid.IntRange(1, 20).Draw(t, "width")
		if got := Width(Clip(line, width)); got > width {
			t.Fatalf("%q is %d wide, want at most %d", line, got, width)
		}
	})
}

func TestSafeTakesTheControlFromStrangers(t *testing.T) {
	if got := Safe("a\x1b[2Jb\r\n\tc\u009bd é \u202egpj\u2028 شكرا"); got != "a·[2Jb···c·d é ·gpj· شكرا" {
		t.Errorf("got %q", got)
	}
}

// The escaped text has no characters that control a terminal, and decodes to the same value.
func TestSafeJSON(t *testing.T) {
	said := "a\u007f\u009bd é \u202egpj \U000e0041 \\"
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	safe := SafeJSON(text)
	if want := `"a\u007f\u009bd é \u202egpj \udb40\udc41 \\"`; string(safe) != want {
		t.Errorf("got %s, want %s", safe, want)
	}
	var meant string
	if err := json.Unmarshal(safe, &meant); err != nil || meant != said {
		t.Errorf("it means %q, %v", meant, err)
	}
}

func TestStyleFollowsTerminalAndUser(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			if len(pairs) > 0 && pairs[0] == name {
				return pairs[1]
			}
			return ""
		}
	}
	for _, c := range []struct {
		terminal, refused bool
		env               func(string) string
		want              bool
	}{
		{true, false, env(), true}, {false, false, env(), false}, {true, true, env(), false},
		{true, false, env("NO_COLOR", "1"), false}, {true, false, env("TERM", "dumb"), false}, {true, false, env("TERM", "xterm"), true},
	} {
		if got := StyleFor(c.terminal, c.refused, c.env).Colour; got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	if got := (Style{}).Bold("x"); got != "x" {
		t.Errorf("plain style writes %q", got)
	}
}

// Each Draw and each Clear must first erase the lines of the Draw before it.
func TestBlockRedrawsInPlace(t *testing.T) {
	var b bytes.Buffer
	block := Block{Out: &b}
	block.Draw("one", "two")
	block.Draw("three")
	block.Clear()
	block.Clear()
	if want := "one\ntwo\n\x1b[2A\r\x1b[Jthree\n\x1b[1A\r\x1b[J"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	columns, rows := Size(file)
	if columns != 80 || rows != 24 {
		t.Errorf("%d by %d", columns, rows)
	}
	if IsTerminal(file) || IsTerminal(&bytes.Buffer{}) {
		t.Errorf("a file is a terminal: %v, a buffer: %v", IsTerminal(file), IsTerminal(&bytes.Buffer{}))
	}
	if _, err := OpenScreen(file, file); err == nil {
		t.Error("a file became a screen")
	}
}
