# What a newcomer needs: make run, make test. The rest: make help.

GO ?= go
# The site that "make run" starts is thrown away at its end; ARGS go to "candor demo".
ARGS ?=
# How long "make fuzz" looks for trouble in each decoder, and "make soak" in the rest.
FUZZTIME ?= 10s
SOAK ?= 10
# How many jobs the largest workflow of "make clients" has.
JOBS ?= 1000
# How many histories under faults "make soak" runs: one core takes an hour and a half for them.
SEEDS ?= 100000
# Raft counts with hashicorp/go-metrics; without the tag, with armon/go-metrics, which it replaced.
TAGS = hashicorpmetrics
HELM ?= helm.sh/helm/v3/cmd/helm@v3.19.0
# How long "make chaos" goes on at least, and until how many acknowledgements (ACKS) and
# faults (FAULTS) there are; SOAKED is for "make soak".
DURATION ?= 10m
ACKS ?= 0
FAULTS ?= 0
SOAKED ?= 4h
# What "make lab" tries: all, or names with commas, as cmd/lab/internal/netlab/README.md has them.
SCENARIO ?= all
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
# The tests that draw random cases draw these, the same each time, so that a change
# fails for what it did; "make soak" draws new ones.
SEED ?= 1
PACKAGES = $(GO) list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | awk
# The blocks of a coverage profile that were never reached, each by its first line, and the
# files of which no block was.
NEVER = awk 'NR > 1 {split($$1, at, ":"); file = at[1]; sub("github.com/candor-grid/candor/", "", file)} \
	NR > 1 && $$NF > 0 {reached[file] = 1} \
	NR > 1 && $$NF == 0 {split(at[2], from, "."); files[++n] = file; lines[n] = from[1]} \
	END {for (i = 1; i <= n; i++) if (!(files[i] in reached)) {if (!told[files[i]]++) print "  " files[i] ": all of it"} \
	else {k = 0; while (k < lines[i] && (getline text < files[i]) > 0) k++; close(files[i]); sub("^[ \t]+", "", text); print "  " files[i] ":" lines[i] "  " text}}'
# What runs concurrently: everything but the pure parts, which have no goroutines.
CONCURRENT ?= ./auctioneer ./bank ./bank/clearing/courier ./estimator $(filter-out %/sampler,$(shell $(GO) list ./nodeagent/...)) $(filter-out %/schema,$(shell $(GO) list ./messages/...)) ./deploy/embedded/... $(filter-out %/audit %/reference %/simulate %/solve %/jobfile %/slurm,$(shell $(GO) list ./cmd/candor/internal/...)) ./cmd/lab/internal/bench

# Where "make install" puts files: below DESTDIR for packages.
PREFIX ?= /usr/local
DESTDIR ?=
# Of packages: the version (a tag, or before the first one the day and the commit), the
# processor, and the time of their files, that of the commit.
VERSION ?= $(shell git describe --tags 2>/dev/null || git log -1 --date=format:%Y%m%d --format=0.0.0+git%cd.%h)
ARCH ?= $(shell $(GO) env GOARCH)
MTIME ?= $(shell git log -1 --format=%ct)
NFPM ?= github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
REFERENCE = $(GO) run -tags $(TAGS) ./cmd/candor/internal/reference

.DEFAULT_GOAL := help
.PHONY: help audit build upgrade-test lab-build lab-test clients console console-shots console-test run test race vet lint lint-deploy fuzz attack soak bench curves lab chaos peers figures clean docs install install-client share sbom packages reproducible

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# With -trimpath the same source and tools make the same bytes in any directory. Without a C
# library the binary starts sooner, and runs on every distribution. Traces of stacks and profiles
# need no table of symbols and nothing for debuggers, which would be a third of its size.
STRIPPED = -ldflags="-s -w"
build: ## build the whole program, bin/candor, and the client alone, bin/client/candor, and state their sizes
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -tags $(TAGS) $(STRIPPED) -o bin/candor ./cmd/candor
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto $(STRIPPED) -o bin/client/candor ./cmd/candor/client
	@wc -c bin/candor bin/client/candor | awk '$$2 != "total" {printf "%s: %.1f MB\n", $$2, $$1 / 1e6}'

lab-build: ## build bin/lab, the program of those who work on Candor: benchmarks, faults, sites of several hosts, studies
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -tags $(TAGS) -o bin/lab ./cmd/lab

share: ## write man pages, completions and units into bin/share
	rm -rf bin/share
	$(REFERENCE) man bin/share/man/man1
	$(REFERENCE) completions bin/share
	@mkdir -p bin/share/systemd
	@for unit in deploy/systemd/*.service; do sed 's|/usr/local/bin/|$(PREFIX)/bin/|' $$unit > bin/share/systemd/$${unit##*/}; done

console: ## build the pages of the console anew, from deploy/console/src; needs node and npm
	cd deploy/console && npm ci --ignore-scripts --no-audit --no-fund && node build.mjs

console-test: ## test the console in headless Chromium; skips without Chromium, and what needs node without node
	CANDOR_NODE=yes $(GO) test -tags browser,$(TAGS) -count 1 -timeout 10m ./deploy/console/...

SHOTS ?= $(CURDIR)/bin/shots
console-shots: ## take pictures of every page of the console into SHOTS (bin/shots)
	CANDOR_SHOTS=$(SHOTS) $(GO) test -tags browser,$(TAGS) -count 1 -timeout 10m -run TestShots ./deploy/console/browser

docs: ## write the reference in deploy/docs/reference anew
	$(REFERENCE) docs deploy/docs/reference

SHARED = cd bin/share && find man bash-completion zsh fish -type f -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/share/{} \;

install: build share ## install the program, man pages, completions and units below PREFIX (/usr/local)
	install -D -m 755 bin/candor $(DESTDIR)$(PREFIX)/bin/candor
	@$(SHARED)
	@cd bin/share/systemd && find . -type f -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/lib/systemd/system/{} \;

install-client: build share ## install the client alone, with man pages and completions, for machines that only use a site
	install -D -m 755 bin/client/candor $(DESTDIR)$(PREFIX)/bin/candor
	@$(SHARED)

sbom: build ## write what each of the two programs is made of beside it, into candor.spdx.json
	$(REFERENCE) sbom bin/candor > bin/candor.spdx.json
	$(REFERENCE) sbom bin/client/candor > bin/client/candor.spdx.json

packages: sbom ## make bin/*.deb and bin/*.rpm, of the whole program and of the client
	rm -rf bin/stage bin/*.deb bin/*.rpm
	$(MAKE) install DESTDIR=$(CURDIR)/bin/stage PREFIX=/usr
	$(MAKE) install-client DESTDIR=$(CURDIR)/bin/stage/client PREFIX=/usr
	for of in nfpm client; do for kind in deb rpm; do VERSION=$(VERSION:v%=%) ARCH=$(ARCH) SOURCE_DATE_EPOCH=$(MTIME) $(GO) run $(NFPM) package --config deploy/packages/$$of.yaml --packager $$kind --target bin || exit 1; done; done

reproducible: ## build in two other directories, and compare the bytes
	@set -e; two=$$(mktemp -d); trap 'rm -rf "$$two"' EXIT; \
	for one in a other/b; do git clone -q . $$two/$$one; $(MAKE) -s -C $$two/$$one build; done; \
	for of in candor client/candor; do cmp $$two/a/bin/$$of $$two/other/b/bin/$$of; done; echo "two builds are equal"

run: build ## start a whole site here, run a real workload on it, check everything
	./bin/candor demo $(ARGS)

# Vetting is left to "make lint", which vets all. Many tests wait more than they work, so more packages than there
# are processors run at a time. The longest begin first. The tests of random inputs, which only work, run beside the
# others at a lower priority.
test: ## run the tests of what users and operators run
	@$(MAKE) --no-print-directory -k -j 2 test-examples test-random

test-examples:
	$(GO) test -vet=off -p $$(($$(nproc) + 2)) -timeout 20m ./deploy/embedded ./messages/mailbox ./deploy/attack $$($(PACKAGES) '!/pgregory.net.rapid/ && $$1 !~ /cmd.lab/ {print $$1}') github.com/coreos/etcd/pkg/fileutil

test-random:
	nice $(GO) test -vet=off $$($(PACKAGES) '/pgregory.net.rapid/ && $$1 !~ /cmd.lab/ {print $$1}') -rapid.seed=$(SEED) -rapid.checks=50

lab-test: ## run the tests of the laboratory, cmd/lab: faults, sites of several hosts, studies, benchmarks
	$(GO) test -vet=off -p $$(($$(nproc) + 1)) -timeout 20m $$($(PACKAGES) '!/pgregory.net.rapid/ && $$1 ~ /cmd.lab/ {print $$1}')
	$(GO) test -vet=off $$($(PACKAGES) '/pgregory.net.rapid/ && $$1 ~ /cmd.lab/ {print $$1}') -rapid.seed=$(SEED)

# NATS starts JetStream again by writing its queues of requests while others use them: a race of its own.
# Under the detector a site takes far more processor time: fewer run side by side.
race: ## run the tests of what is concurrent under the race detector
	CANDOR_SEEDS=4 $(GO) test -race -vet=off -timeout 20m -parallel 3 -skip '^(TestJetStreamStartsAgain|TestDepotTakesFiles)AfterAFullDisk$$' $(CONCURRENT)

upgrade-test: ## build the last release from the history, and roll a loaded site from it to this source, back, and forth again
	$(GO) test -count 1 -v -timeout 20m -run TestUpgradeFromTheLastRelease ./cmd/lab/internal/netlab/command

vet: ## go vet
	$(GO) vet ./...

lint: vet ## go vet, gofmt and staticcheck
	@unformatted=$$(gofmt -l $$($(GO) list -f '{{.Dir}}' ./...)); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) run $(STATICCHECK) ./...

lint-deploy: ## have Helm check the chart in deploy/chart; downloads Helm
	cd $$(mktemp -d) && $(GO) run $(HELM) lint --strict $(CURDIR)/deploy/chart

# The fuzzer calls it a failure when its time is up in the middle of a slow input;
# a real finding also names the failing input.
fuzz: ## fuzz each decoder for FUZZTIME (10s)
	@set -e; log=$$(mktemp); trap 'rm -f "$$log"' EXIT; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			if ! $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" >"$$log" 2>&1; then \
				cat "$$log"; \
				grep -q 'context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log" || exit 1; \
			else \
				tail -n 2 "$$log"; \
			fi; \
		done; \
	done

attack: ## attack sites as their users, peers and tasks can, in each form that this user can start, and print what refused each attempt
	@if [ "$$(id -u)" = 0 ]; then echo "forms: as root, as an ordinary user, as in a container, on three hosts, with limits, by waiting, by sums"; \
	else echo "forms: as an ordinary user, with limits, by waiting, by sums; three hosts and a container want root"; fi
	CANDOR_ATTACKS=all $(GO) test -count 1 -v -timeout 60m -run TestAttack ./deploy/attack
	CANDOR_ATTACKS=all $(GO) test -count 1 -v -run TestDiskIsNotFilledWhileProcessorsAreBusy ./nodeagent/runner

clients: build ## install programs of others that speak to Slurm, and drive a site with them; JOBS (1000)
	@for program in snakemake toil-cwl-runner cwltool dask-scheduler; do command -v $$program >/dev/null || { apt-get update && apt-get install -y --no-install-recommends snakemake toil cwltool python3-distributed; exit; }; done
	@if [ "$$(id -u)" = 0 ]; then dir=$$(mktemp -d -p /srv) && chmod 755 $$dir && install -d -o nobody $$dir/home && cp bin/candor deploy/clients/clients.sh $$dir/ && \
		cd $$dir && HOME=$$dir/home USER=nobody JOBS=$(JOBS) setpriv --reuid nobody --regid nogroup --clear-groups ./clients.sh ./candor; code=$$?; rm -rf $$dir; exit $$code; \
	else JOBS=$(JOBS) deploy/clients/clients.sh bin/candor; fi

soak: ## run the tests of what is concurrent and those on random cases SOAK (10) times over, shuffled
	$(GO) test -count $(SOAK) -shuffle on -timeout 60m $$($(PACKAGES) '/pgregory.net.rapid/ {print $$1}')
	$(GO) test -count $(SOAK) -shuffle on -timeout 60m $(CONCURRENT)
	CANDOR_KILLS=all $(GO) test -run 'TestKilledAtEveryStep$$' -count 3 -v -timeout 60m ./deploy/embedded
	CANDOR_SEEDS=1000 CANDOR_FIRST_SEED=$$(date +%s) $(GO) test -run 'TestReplay$$' -timeout 60m ./bank/ledger
	CANDOR_SEEDS=10000 $(GO) test -run 'TestAlteredJournalsAreFound$$' -timeout 60m ./bank
	CANDOR_SEEDS=10000 $(GO) test -run 'TestHonestPastsAreDerived$$' -timeout 3h ./bank
	CANDOR_HOLES=all $(GO) test -v -run 'TestVerbsFindEachHole$$' -timeout 60m ./deploy/simulated/audit
	CANDOR_SEEDS=10000 CANDOR_FIRST_SEED=$$(date +%s) $(GO) test -run 'TestTwins$$' -timeout 60m ./auctioneer/book
	CANDOR_SEEDS=2500 CANDOR_FIRST_SEED=$$(date +%s) $(GO) test -v -run 'TestNoNodeIsOversold$$|TestLicencesAreNeverOversold$$' -timeout 60m ./auctioneer/book
	CANDOR_REQUESTS=1000000 CANDOR_FIRST_SEED=$$(date +%s) $(GO) test -v -run 'TestFuzzedRequests$$' -timeout 2h ./deploy/attack
	CANDOR_SEEDS=200 $(GO) test -run 'TestDamagedFiles$$' -timeout 60m ./messages/mailbox
	CANDOR_SEEDS=20000 $(GO) test -run 'TestTheGoodReplicaBySeeds$$' -parallel 24 -timeout 60m ./messages/mailbox
	CANDOR_DAMAGE=all CANDOR_FIRST_SEED=$$(date +%s) $(GO) test -run 'TestRunbook$$/damage' -timeout 3h ./deploy/runbook
	CANDOR_SEEDS=10000 $(GO) test -run 'TestRing$$|TestALiarHasItsLimitAndShare$$' -timeout 60m ./bank/clearing
	CANDOR_SEEDS=1000 $(GO) test -run 'TestBlackHoles' -timeout 60m ./cmd/lab/internal/faults
	CANDOR_LAB=all $(GO) test -count 1 -run "TestLiar|TestRestore|TestChaos|TestPower|TestLinks" -timeout 60m ./cmd/lab/internal/netlab/command
	$(MAKE) chaos SEED=$$(date +%s) DURATION=$(SOAKED)
	GOGC=400 CANDOR_SEEDS=$(SEEDS) CANDOR_FIRST_SEED=$$(date +%s) $(GO) test -v -run 'TestSeeds$$' -timeout 12h \
		-coverpkg ./auctioneer/desk,./auctioneer/federation -coverprofile seeds.out ./cmd/lab/internal/faults
	@echo "what the leader never did in these seeds:"; $(NEVER) seeds.out | sort -u; rm seeds.out

bench: lab-build ## measure latency, throughput and the rest on this machine
	@for bench in latency dispatch processes wake auction ledger scale; do ./bin/lab bench $$bench --json || exit 1; done

curves: lab-build ## measure over growing slots, nodes and waiting jobs, into bin/curves (hours on a slow machine)
	./bin/lab bench curves --dir bin/curves

lab: lab-build ## sites of several hosts on this machine: kill, cut off, upgrade, federate; SCENARIO=failover for one
	./bin/lab net --scenario $(SCENARIO) --reports bin/lab.json $(ARGS)

chaos: lab-build ## a site of three hosts under faults drawn by SEED (1), for DURATION (10m) and until ACKS and FAULTS, held to all that it acknowledged
	./bin/lab net --scenario chaos --seed $(SEED) --for $(DURATION) --acks $(ACKS) --faults $(FAULTS) --reports bin/chaos.json $(ARGS)

peers: build lab-build ## the same work through Slurm, Grid Engine and Dask of Debian, beside Candor; as root; SLOTS=8, ARRAY=2000
	CANDOR=bin/candor LAB=bin/lab deploy/peers/run.sh

# The logs that some studies run on, of the Parallel Workloads Archive, are yours to get.
figures: lab-build ## reproduce the papers' tables and figures in figures/; TRACES=DIR says where the logs are
	./bin/lab study $(STUDIES) --out figures $(if $(TRACES),--traces $(TRACES))

# Markets, as mechanism/parameter=value, and the kinds of lie of which each claims that none gains on average.
AUDITED ?= proportional:weights proportional/alpha=1:weights highest-bid:deadline,length,arrival,ghosts,slow highest-bid/price=pivot:value,deadline,length,arrival,ghosts,slow \
	highest-bid/price=pivot/horizon=1000h:value,deadline,length,arrival,ghosts,slow \
	deadline:value,deadline,length,arrival,slow deadline/hand_over=end:value,length,arrival,slow batch-queue: batch-queue/pricing=pivot:value,delay \
	reservation:value,slow reservation/mode=fixed:value,deadline,length,slow contract:value,deadline,slow \
	karma:value,deadline,length,ghosts,slow fifo:value,deadline,length,arrival,ghosts,slow \
	backfill:value,deadline,length,arrival,ghosts,slow fairshare:value,deadline,length,arrival,ghosts,slow
AUDIT ?= --from 30d --to 45d --nodes 3 --parallel skip --scale-load 2 --jobs 170 --seeds 3
LIES = value,deadline,length,arrival,split,names,collusion,three,delay,slow,ghosts,weights,joint
# A row that holds is kept in AUDIT_ROWS, for the same program, log and flags: an audit that is
# interrupted goes on where it was. The program has no stamp of a commit, so that changed pages change no row.
AUDIT_ROWS ?= bin/audit
audit: ## the table of lies of every mechanism, of the log AUDIT_TRACE, row by row; fails where a claimed zero is none
	@test -n "$(AUDIT_TRACE)" || { echo "AUDIT_TRACE: name a log of the Parallel Workloads Archive"; exit 2; }
	@$(GO) build -trimpath -buildvcs=false -tags $(TAGS) -o $(AUDIT_ROWS)/candor ./cmd/candor
	@echo "| market | jobs | $(LIES) | control |" | sed 's/,/ | /g; p; s/[^|]*/---/g; s/^---//; s/---$$//'
	@market=$$(mktemp); trap 'rm -f "$$market"*' EXIT; trap 'exit 130' INT TERM; failed=0; since=$$(date +%s); \
	of=$$(cat $(AUDIT_ROWS)/candor $(AUDIT_TRACE) | cksum); for m in $(AUDITED); do \
	row=$(AUDIT_ROWS)/$$(echo "$$of $$m $(AUDIT) $(LIES)" | cksum | cut -d ' ' -f 1); \
	echo "mechanism: $${m%%:*}" | sed 's|/|\n|g; s/=/: /g' > "$$market"; \
	test -e $$row || { $(AUDIT_ROWS)/candor audit --row --trace $(AUDIT_TRACE) --market "$$market" $(AUDIT) --lies $(LIES) \
	$$(test -z "$${m#*:}" || echo --zero "$${m#*:}") > "$$market.row" && mv "$$market.row" $$row; } || { failed=1; row="$$market.row"; }; \
	echo "| \`$${m%%:*}\` $$(cat "$$row")"; done; \
	echo "these rows took $$((($$(date +%s) - since) / 60)) minutes"; exit $$failed

clean: ## remove what was built
	rm -rf bin
