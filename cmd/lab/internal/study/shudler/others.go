package shudler

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const othersName = "shudler-other-logs"

// Others is a study with the tables and figures of the paper by Shudler et al., on two logs that the paper did not use.
var Others = study.Study{
	Name:  othersName,
	About: "tables II and III and figures 2-8 on two logs that the paper did not use (needs --traces)",
	Run:   othersStudy,
}

// others are logs of two smaller machines. Their parallel jobs are converted to serial jobs. As in the paper, the first
// log has a heavy load on all of its nodes, and the second has a light load on three quarters of its nodes.
var others = []machine{
	{file: "KTH-SP2-1996-2.1-cln.swf.gz", nodes: 100},
	{file: "NASA-iPSC-1993-3.1-cln.swf.gz", nodes: 96},
}

var priceNames = [...]string{"first", "k-th"}

func (m machine) name() string { name, _, _ := strings.Cut(m.file, "-cln"); return name }

// otherLog has the results on one log. The paper has no results for it.
type otherLog struct {
	Nodes  int                           `json:"nodes"`
	Jobs   int                           `json:"jobs"`
	Seeds  int                           `json:"seeds"`
	Tables map[string]map[string]payoffs `json:"tables"` // as in shudler-tables
	Curves map[string]map[string]curve   `json:"curves"` // as in shudler-figures
	// Controls change one property of the log or the machine, to find out why a sentence of the paper does not hold.
	Controls []control `json:"controls"`

	results *results
	tallies map[run]*crowdTally
}

// control is a repetition of the study for the same log, but on a machine of another size. The field Holds has one
// entry for each claim of the study: whether the claim is also true on this machine.
type control struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Jobs  int    `json:"jobs"`
	Holds []bool `json:"holds"` // by claim
	claims
}

// lpcLoad is the load of the paper's log: requested node time divided by available node time.
const lpcLoad = 0.325

// controls repeats the measurement of this machine's log in two changed forms, to compare the results. In the first
// form, the number of nodes is changed, so that the load is the same as in the paper's log. In the second form, each
// parallel job is replaced by one serial job.
func (m machine) controls(o study.Options) (out []control, err error) {
	w, _, err := m.load(o)
	if err != nil {
		return nil, err
	}
	slots := asked(w)
	lighter, alone := m, m
	lighter.nodes, alone.alone = max(1, int(slots/lpcLoad)), true
	if w, _, err = alone.load(o); err != nil {
		return nil, err
	}
	alone.nodes = max(1, int(float64(m.nodes)*asked(w)/slots))
	for k, c := range []machine{m, lighter, alone} {
		tallies, jobs, _, err := c.tallies(o)
		if err != nil {
			return nil, err
		}
		of := control{Name: []string{"as it is", "load of the LPC log", "a serial job for each job"}[k], Nodes: c.nodes, Jobs: jobs, claims: claimsOf(tallies)}
		for _, x := range of.claims {
			of.Holds = append(of.Holds, x.holds)
		}
		out = append(out, of)
		o.Tell(k+1, 3, "%s, %s: %d of %d sentences hold", m.name(), of.Name, of.holding(), len(of.claims))
	}
	return out, nil
}

func (c claims) holding() (n int) {
	for _, x := range c {
		if x.holds {
			n++
		}
	}
	return n
}

func othersStudy(o study.Options) (*study.Report, error) {
	numbers, report := map[string]*otherLog{}, &study.Report{}
	for _, m := range others {
		l, figures, err := m.other(o)
		if err != nil {
			return nil, err
		}
		numbers[m.name()] = l
		report.Figures = append(report.Figures, figures...)
	}
	report.Numbers, report.Page = numbers, othersPage(numbers)
	return report, nil
}

// other runs the studies of the tables and figures on a log that the paper did not use.
func (m machine) other(o study.Options) (*otherLog, []*study.Figure, error) {
	l := &otherLog{Nodes: m.nodes}
	var err error
	if l.results, err = simulate(m, o); err != nil {
		return nil, nil, err
	}
	if l.tallies, l.Jobs, l.Seeds, err = m.tallies(o); err != nil {
		return nil, nil, err
	}
	if l.Controls, err = m.controls(o); err != nil {
		return nil, nil, err
	}
	l.Tables = l.results.numbers()
	prefix := othersName + "-" + m.name()
	figures, curves := drawCurves(prefix, l.tallies)
	l.Curves = curves
	return l, append(figures,
		payoffPlot(prefix+"-users", usersLabel, &l.results.users[groupC], nil),
		payoffPlot(prefix+"-designer", designerLabel, &l.results.designer, nil)), nil
}

func othersPage(numbers map[string]*otherLog) *study.Page {
	p := study.NewPage("Payoffs in a market on logs that the paper did not use (Shudler et al., tables II and III, figures 2 to 8)")
	p.Text("As studies %s and %s, on other logs; a job with several processors is so many serial ones. The paper's sentences are about its own log: "+
		"what follows says which of them hold on others.", tablesName, figuresName)
	for _, m := range others {
		l := numbers[m.name()]
		p.Section(m.name())
		p.Text("%d serial jobs on %d nodes, %d seeds. Each cell: the designer's payoff, the payoff of the aggressive users of group C; mean and half of the 95 %% confidence interval.",
			l.Jobs, l.Nodes, l.Seeds)
		for s := range prices {
			p.Text("At %s price:", priceNames[s])
			p.Table(betaHead(), tableRows(func(a, b int) string {
				return fmt.Sprintf("%s, %s", l.results.designer[s][a][b], l.results.users[groupC][s][a][b])
			}))
		}
		prefix := othersName + "-" + m.name()
		p.Figure(prefix+"-users", "Payoff of the aggressive users of group C")
		p.Figure(prefix+"-designer", "Payoff of the designer")
		for _, f := range paperFigures {
			p.Figure(prefix+"-"+f.name, f.caption)
		}
		p.Section("Same, better, different: " + m.name())
		l.results.tablesVerdict(p)
		curvesVerdict(p, l.tallies)
		controlsTable(p, l.Controls)
	}
	return p
}

func controlsTable(p *study.Page, of []control) {
	p.Text("Controls: the same sentences on as many nodes as give the log the load of the paper's, %.3g, and with each parallel job as one serial job. A sentence that "+
		"turns on the log and holds with a control turns by what the control takes away. A log without requested times, as NASA's, makes WSEPT the same as WSPT.", lpcLoad)
	head := []string{"sentence"}
	for _, c := range of {
		head = append(head, fmt.Sprintf("%s (%d nodes, %d jobs)", c.Name, c.Nodes, c.Jobs))
	}
	var rows [][]string
	for k := range of[0].claims {
		row := []string{of[0].claims[k].paper}
		for _, c := range of {
			x := c.claims[k]
			row = append(row, fmt.Sprintf("%s: %.4g, %.4g", map[bool]string{true: "holds", false: "turns"}[x.holds], x.a, x.b))
		}
		rows = append(rows, row)
	}
	p.Table(head, rows)
}

// tablesVerdict checks four findings of the paper's tables. First, β = 50 % under HB at first price is an equilibrium.
// Second, β = 70 % under WSPT at k-th price is one too. Third, at k-th price, WSPT earns the designer most. Fourth, the
// first price always earns more than the k-th price.
func (r *results) tablesVerdict(p *study.Page) {
	designer, users := r.designer.means(), r.users[groupC].means()
	for s := range prices {
		ours, paper := named(equilibria(&designer[s], &users[s])), named(equilibria(&paperDesigner[s], &paperUsers[s]))
		p.Claim(ours == paper, fmt.Sprintf("At %s price: %s.", priceNames[s], paper), "%s", ours)
	}
	best, first := 0, 0
	for b := range betas {
		if d := designer[1]; d[2][b] > max(d[0][b], d[1][b]) {
			best++
		}
		if d := designer; d[0][0][b] > d[1][0][b] && d[0][1][b] > d[1][1][b] && d[0][2][b] > d[1][2][b] {
			first++
		}
	}
	p.Claim(best == len(betas), "At k-th price the designer earns most under WSPT, whatever the β.", "at %d of %d", best, len(betas))
	p.Claim(first == len(betas), "First price earns the designer more than k-th price, under each algorithm, whatever the β.", "at %d of %d", first, len(betas))
}
