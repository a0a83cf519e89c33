package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestInterruptEndsQuestion(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if yes, err := (&App{In: in, Err: io.Discard}).Agrees(ctx, "Go on?"); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", yes, err)
	}
	for answer, want := range map[string]bool{"y\n": true, " Yes\n": true, "no\n": false, "\n": false, "": false} {
		var asked strings.Builder
		yes, err := (&App{In: strings.NewReader(answer), Err: &asked}).Agrees(t.Context(), "Go on?")
		if yes != want || err != nil || asked.String() != "Go on? [y/N] " {
			t.Errorf("%q: %v, %v after %q", answer, yes, err, asked.String())
		}
	}
}
