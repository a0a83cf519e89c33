package client

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
)

func TestColoursLeaveTheTextAlone(t *testing.T) {
	s := clienttest.AnswerAll(newSite(t))
	s.Width = 100
	for _, line := range []string{"jobs", "why 104", "markets", "statement"} {
		user, tty := clienttest.OpenTerminal(t)
		code := s.OnTerminal(tty, strings.Fields(line)...)
		go func() {
			<-code
			tty.WriteString("END")
		}()
		coloured := strings.ReplaceAll(strings.TrimSuffix(clienttest.ReadUntil(t, user, "END"), "END"), "\r\n", "\n")
		plain := s.Run(strings.Fields(line)...).Out
		if coloured == plain {
			t.Errorf("%s: nothing was coloured", line)
		}
		if got := uncoloured(coloured); got != plain {
			t.Error(clienttest.Difference(got, plain))
		}
	}
}

func uncoloured(s string) string {
	out := []byte{}
	for i := 0; i < len(s); i++ {
		if s[i] == 0x1b {
			for s[i] != 'm' {
				i++
			}
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}
