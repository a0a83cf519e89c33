package gu

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

const exampleName = "gu-example"

// Example is the study of tables 1 to 3.
var Example = study.Study{
	Name:  exampleName,
	About: "tables 1-3: the allocation of three tasks unit by unit, and what they pay",
	Run:   example,
}

// exampleTasks are the tasks of the paper's example. There is one slot, and λ = 1.
var exampleTasks = []deadline.Task{
	{Arrival: 100, Deadline: 104, Length: 3, Value: 30},
	{Arrival: 101, Deadline: 104, Length: 2, Value: 25},
	{Arrival: 102, Deadline: 108, Length: 3, Value: 33},
}

// exampleNumbers has the results for each task. Units has the units of time in which the task had the slot. The field
// Payments has the payments by the paper's rule, and the field Monotone has the payments by the corrected rule.
type exampleNumbers struct {
	Units    [][]int   `json:"units"`
	Payments []float64 `json:"payments"`
	Monotone []float64 `json:"payments_monotone"`
}

func example(study.Options) (*study.Report, error) {
	p := deadline.Problem{Capacity: 1, Lambda: 1, Rule: deadline.Paper, Tasks: exampleTasks}
	o, err := deadline.Run(&p)
	if err != nil {
		return nil, err
	}
	n := exampleNumbers{Payments: o.Payments()}
	for i := range exampleTasks {
		n.Units = append(n.Units, o.Units(i))
	}
	p.Rule = deadline.Monotone
	monotone, err := deadline.Run(&p)
	if err != nil {
		return nil, err
	}
	n.Monotone = monotone.Payments()
	return &study.Report{Numbers: n, Page: n.page()}, nil
}

func (n *exampleNumbers) page() *study.Page {
	p := study.NewPage("Three tasks and a slot (Gu et al., tables 1 to 3)")
	p.Text("Tasks (arrival, deadline, length, value) (100, 104, 3, 30), (101, 104, 2, 25) and (102, 108, 3, 33); one slot; λ = 1.")
	var rows [][]string
	for i, units := range n.Units {
		paper := []string{"completes, pays 22", "completes, pays 22", "not said"}[i]
		rows = append(rows, []string{fmt.Sprint(i + 1), fmt.Sprint(units), fmt.Sprint(n.Payments[i]), paper, fmt.Sprint(n.Monotone[i])})
	}
	p.Table([]string{"user", "units", "pays", "paper", "pays under rule monotone"}, rows)
	p.Section("Same, better, different")
	p.Text("- Same: who has the slot in units 100 to 104 (1, 1, 1, 2, 2), and the critical values of users 1 and 2. The paper's sentence says users 2 and 3; " +
		"its tables 2 and 3 are of 1 and 2.")
	p.Text("- Different: the third user's task is completed after unit 104, where the paper's table ends.")
	p.Text("- Better: the paper's rule with λ > 0 is not truthful (package deadline has a counterexample to theorem 1); rule monotone is, and the last column is what it charges.")
	return p
}
