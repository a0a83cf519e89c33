package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Book is the replicated state. It consists of parts, and has the methods of all parts. It is not safe for concurrent
// use.
type Book struct {
	clock        clock
	watch        watch
	index        index
	jobs         jobs
	visitors     visitors
	dependencies dependencies
	nodes        nodes
	windows      windows
	markets      markets
	quotes       quotes
	tokens       tokens
	meters       meters
	claims       claims
	effects      effects
	changes      changes
	notices      notices
	endings      endings
	health       health
	exchanges    exchanges
	remote       remote
	licenses     licenses
	bounds       bounds
	archive      archive
}

// New returns an empty book.
func New() *Book {
	b := &Book{archive: archive{whole: retainWhole}}
	b.clear()
	return b
}

// clear empties the book. A book must not be copied, because its parts point to one another.
func (b *Book) clear() {
	archive, behind := b.archive, unread{}
	*b = Book{
		archive:  archive,
		index:    index{keys: map[string]messages.JobID{}, pending: map[messages.Name]int{}, listed: map[messages.Name]*Numbers{}},
		jobs:     jobs{byID: table{chunks: map[messages.JobID]*chunk{}}, past: map[messages.JobID]*Past{}, ordered: map[messages.JobID]bool{}, alive: map[messages.Name]int{}, behind: behind},
		visitors: visitors{byVisit: map[job.Visit]messages.JobID{}, guests: map[messages.Name]VisitingCount{}},
		nodes:    nodes{names: map[messages.Name]uint32{}, taking: map[messages.Name]int{}},
		windows:  windows{nodes: &b.nodes, watch: &b.watch, clock: &b.clock},
		quotes:   newQuotes(),
		tokens:   tokens{places: map[string]int{}},
		markets:  markets{notes: map[messages.Name]map[messages.JobID][]int64{}},
		remote:   remote{remoteJobs: map[messages.JobID]*RemoteJob{}, departed: map[messages.Name]int{}, past: map[messages.JobID]*Past{}, archive: &b.archive, index: &b.index, watch: &b.watch, clock: &b.clock},
		meters: meters{tariffs: map[messages.Name][]Tariff{}, spells: map[messages.Name][]spell{}, metered: map[messages.Name]map[messages.JobID]bool{},
			changes: 1, unread: behind, jobs: &b.jobs, clock: &b.clock},
		dependencies: dependencies{waiters: waiters{}, starts: waiters{}, pairs: waiters{}, delayed: sorted[delayed]{compare: delayed.compare}, jobs: &b.jobs, watch: &b.watch, clock: &b.clock},
		bounds:       bounds{byMarket: map[messages.Name]market.AtOnce{}, used: map[Owner]market.Bound{}, watch: &b.watch},
		licenses:     licenses{byName: map[messages.Name]*job.LicenseStatus{}, bounds: &b.bounds, jobs: &b.jobs, watch: &b.watch},
		claims:       claims{licenses: &b.licenses, notices: &b.notices, jobs: &b.jobs, nodes: &b.nodes, meters: &b.meters, watch: &b.watch, clock: &b.clock, dependencies: &b.dependencies},
		effects:      effects{waiting: sorted[Effect]{compare: Effect.compare}, spoken: map[messages.JobID]int{}, frees: map[string]bool{}, jobs: &b.jobs, watch: &b.watch},
		changes:      changes{jobs: &b.jobs, dependencies: &b.dependencies, effects: &b.effects, watch: &b.watch},
		notices:      notices{queue: sorted[Notice]{compare: Notice.compare}, waitFor: map[string]int{}, jobs: &b.jobs, watch: &b.watch, clock: &b.clock},
		endings: endings{archive: &b.archive, notices: &b.notices, jobs: &b.jobs, index: &b.index, visitors: &b.visitors, dependencies: &b.dependencies, claims: &b.claims,
			meters: &b.meters, effects: &b.effects, changes: &b.changes, markets: &b.markets, watch: &b.watch, clock: &b.clock},
		health: health{jobs: &b.jobs, nodes: &b.nodes, meters: &b.meters, effects: &b.effects, watch: &b.watch, clock: &b.clock},
		exchanges: exchanges{licenses: &b.licenses, jobs: &b.jobs, nodes: &b.nodes, windows: &b.windows, meters: &b.meters, claims: &b.claims, endings: &b.endings,
			health: &b.health, watch: &b.watch, clock: &b.clock, gathers: map[messages.Name]gatherer{}},
	}
}
