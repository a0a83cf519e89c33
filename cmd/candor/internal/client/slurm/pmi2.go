package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A connection by PMI-2 (Slurm, contribs/pmi2) begins with the line "cmd=init pmi_version=2 pmi_subversion=0". Each
// later message begins with six digits, which are the length of its text. The text is "cmd=NAME;KEY=VALUE;…". In a
// value, ";;" stands for one semicolon.

func (p *pmi) serve2(r *pmiRank, from *bufio.Reader) {
	for {
		ask, err := readPMI2(from)
		if errors.Is(err, errPMI2) {
			p.fail(r, err.Error())
		}
		if err != nil {
			return
		}
		p.mu.Lock()
		if answer := p.answer2(r, ask); answer != "" {
			p.tell2(r, ask, answer)
		}
		p.mu.Unlock()
	}
}

// maxPMI2 is the largest size of a PMI-2 message in bytes. A value has at most [pmiValue] bytes.
const maxPMI2 = 8 << 10

var errPMI2 = errors.New("sent a message to PMI without a valid length")

func readPMI2(from io.Reader) (map[string]string, error) {
	var head [6]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(head[:])))
	if err != nil || n < 0 || n > maxPMI2 {
		return nil, errPMI2
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, err
	}
	return parsePMI2(string(text)), nil
}

// parsePMI2 reads the text of a message, such as "cmd=kvs-put;key=a;value=b;;c;".
func parsePMI2(text string) map[string]string {
	words := map[string]string{}
	var word strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != ';':
			word.WriteByte(text[i])
			continue
		case i+1 < len(text) && text[i+1] == ';':
			word.WriteByte(';')
			i++
			continue
		}
		name, value, _ := strings.Cut(word.String(), "=")
		words[name] = value
		word.Reset()
	}
	return words
}

// tell2 writes an answer. It repeats the request's field thrid, with which a rank finds the thread that waits for the
// answer.
func (p *pmi) tell2(r *pmiRank, ask map[string]string, answer string) {
	text := "cmd=" + ask["cmd"] + "-response;"
	if thread, is := ask["thrid"]; is {
		text += "thrid=" + thread + ";"
	}
	text += answer
	p.tell(r, fmt.Sprintf("%6d%s", len(text), text))
}

// answer2 returns the answer to a message, or "" if the answer comes later. The caller holds p.mu.
func (p *pmi) answer2(r *pmiRank, ask map[string]string) string {
	switch ask["cmd"] {
	case "fullinit":
		r.began = true
		return fmt.Sprintf("rc=0;pmi-version=2;pmi-subversion=0;rank=%d;size=%d;appnum=0;debugged=FALSE;pmiverbose=FALSE;", r.rank, len(p.ranks))
	case "job-getid":
		return "jobid=" + p.name + ";rc=0;"
	case "kvs-put":
		if !p.put(ask["key"], ask["value"]) {
			return "rc=-1;errmsg=the key or the value is too long;"
		}
		return "rc=0;"
	case "kvs-get", "info-getjobattr":
		value, is := p.values[ask["key"]]
		if !is {
			return "found=FALSE;rc=0;"
		}
		return "found=TRUE;value=" + strings.ReplaceAll(value, ";", ";;") + ";rc=0;"
	case "kvs-fence":
		r.fence = ask
		p.barrier(r)
		return ""
	case "finalize":
		r.finalized = true
		return "rc=0;"
	case "abort":
		p.stop(pmiAbort{code: 1})
		return ""
	}
	return "rc=-1;errmsg=srun does not know this command;"
}
