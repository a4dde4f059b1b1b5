# Two commands do all the set-up: `make try` and `make test`.

PROFILE ?= release
LINERATE = $(or $(CARGO_TARGET_DIR),target)/$(PROFILE)/linerate

.PHONY: build release try test seeds test-vm test-vm-fleet test-vm-matrix deps vm-deps check grade grade-drawn grade-stars accuracy kill attack nemesis crowd ledger-campaign watch-campaign transfer-cases selfcheck fuzz bench bench-check

build:
	cargo build --profile $(PROFILE) --locked -p linerate

# One static file each in release/, for this architecture and for aarch64 where there is a linker for it: it runs on any
# Linux from 4.18 on, and `--on` copies it to hosts.
release:
	scripts/release.sh

# Measures a path of 1 Gbit/s and 60 ms between two hosts made on this machine, says why it is slow, applies the
# remedy and measures again; then watches three hosts while a path gets worse. No root.
try: build
	scripts/try.sh $(LINERATE)

# Installs what the tests need (as root), runs them all, and ends with what was skipped and how many passed.
# IPERF3_NEW=/path/to/iperf3 runs the matrix with that iperf3 too.
test: deps vm-deps
	scripts/test.sh

# Runs every fuzz target for ten seconds of CPU time, or SECONDS, on its seeds and on changes of them, with stable Rust: two minutes on
# two CPUs. TARGETS=iperf2 chooses some.
seeds:
	SEEDS_SECONDS=$(or $(SECONDS),10) cargo test --locked --profile fast --workspace --test seeds -- $(TARGETS)

# Guests of QEMU, with or without KVM: audits, settings kept over a boot, rollbacks. Ten minutes at most; where
# QEMU or Debian's kernels cannot be had, each test is skipped and says why. What measures runs alone.
test-vm: vm-deps
	cargo test --locked --profile fast --workspace --test vm -- --test-threads=2 --skip netem::
	cargo test --locked --profile fast --workspace --test vm -- netem::

# Those with eight guests on one network, each with an sshd: a quarter of an hour on two CPUs without KVM.
test-vm-fleet: vm-deps
	cargo test --locked --profile fast --workspace --test vm -- --test-threads=1 --include-ignored --nocapture fleet:: roll_out::

# The whole matrix of them; of `transfer::` the twelve transfers of `make transfer-cases`, between two guests: ten minutes.
test-vm-matrix: vm-deps
	cargo test --locked --profile fast --workspace --test vm -- --test-threads=1 --include-ignored --nocapture

# Runs all scenarios and holds the findings against what they expect: tens of minutes.
# RUNS=3 runs each with three seeds, SEEDS_FROM=100 with others, KEEP=folder keeps the runs.
grade: build
	$(LINERATE) lab grade scenarios --runs $(or $(RUNS),1) --seeds-from $(or $(SEEDS_FROM),0) $(if $(KEEP),--keep $(KEEP))

# N paths drawn at random, from the number SEED on, held against their truth by arithmetic: FAMILY=policer draws that
# cause only, KEEP=folder keeps the records. A hundred take a quarter of an hour.
grade-drawn: build
	$(LINERATE) lab grade --drawn $(or $(N),100) --seeds-from $(or $(SEED),1) $(if $(FAMILY),--only $(FAMILY)) $(if $(KEEP),--keep $(KEEP))

# Meshes of tests over the lab's stars, each with one planted cause or none: ten minutes. RUNS=3 runs each three times.
grade-stars: build
	RUNS=$(or $(RUNS),1) ONLY=$(ONLY) scripts/grade-stars.sh $(LINERATE)

# The same with the remedies applied, written into docs/accuracy.md.
accuracy: build
	scripts/accuracy.sh $(LINERATE)

# What the lab makes against what it was asked for: two minutes.
selfcheck: build
	$(LINERATE) lab selfcheck

# Kills 50 labs and 20 meshes over 16 hosts at random moments and looks for what is left.
kill:
	cargo test -p linerate --locked --profile fast --test it -- --ignored --nocapture fifty_killed_labs_leave_nothing a_mesh_that_is_killed

# Sixteen attackers at once against a server with its default bounds: an hour. One minute of it is in `make test`.
attack:
	LINERATE_ATTACK_SECONDS=$(or $(ATTACK_SECONDS),3600) cargo test -p linerate --locked --profile fast --test it -- campaign:: --nocapture

# Kills and stops a hub and its agents, cuts their connections and fills the hub's disk, for MINUTES from the number SEED on; then
# each test that was due has one row, and no result is lost. A minute and a half of it is in `make test`.
nemesis:
	LINERATE_NEMESIS_SECONDS=$$(($(or $(MINUTES),120) * 60)) LINERATE_NEMESIS_SEED=$(or $(SEED),$$(date +%s)) cargo test -p linerate --locked --profile fast --test it -- nemesis:: --nocapture

# A hub with AGENTS agents (1000) that test as often as 12 times a day each at 60 times the speed, for MINUTES (10): its memory, its
# share of a core, how long its pages take; each test that was due has one row, also after the hub was killed and all agents came
# back at once. A minute of it, with 200 agents, is in `make test`.
crowd:
	LINERATE_CROWD_MINUTES=$(or $(MINUTES),10) LINERATE_CROWD_AGENTS=$(AGENTS) cargo test -p linerate --locked --profile fast --test it -- crowd:: --nocapture

# N short random tests from the number SEED on, of linerate and iperf3 in all four pairings: every difference between what one end
# wrote and the other read is explained, or fails. About a second each; twelve of them are in `make test`.
ledger-campaign:
	LINERATE_LEDGER_TESTS=$(or $(N),1000) LINERATE_LEDGER_SEED=$(or $(SEED),1) cargo test -p linerate --locked --profile fast --test it -- ledger_campaign::random --nocapture

# Regular tests over a lab's paths while these break, one fault after another in random order (SEED=n repeats one), for MINUTES
# (120): each alert comes within three tests, says the right thing and ends with its fault. One fault is in `make test`.
watch-campaign:
	LINERATE_WATCH_MINUTES=$(or $(MINUTES),120) LINERATE_WATCH_SEED=$(SEED) cargo test -p linerate --locked --profile fast --test it -- watch_campaign:: --nocapture

# Twelve transfers from disk to disk whose disks and network were made slow, so that their limit is known: five minutes, as root.
# Three of them are in `make test`, and two between two guests.
transfer-cases:
	LINERATE_TRANSFER_CASES=1 cargo test -p linerate --locked --profile fast --test it -- transfer_cases:: --nocapture

check:
	cargo fmt --all --check
	cargo clippy --workspace --locked --all-targets --features linerate-fuzz/targets --profile fast -- -D warnings
	cargo clippy --locked --profile fast --workspace --test vm -- -D warnings
	scripts/deny.sh

deps:
	scripts/test-deps.sh

vm-deps:
	scripts/vm-deps.sh

# Runs every fuzz target for FUZZ_SECONDS each (600 unless given), PARALLEL=n of them at once, and prints a table.
# Nightly Rust and cargo-fuzz are installed where they are missing.
fuzz:
	scripts/fuzz.sh $(or $(FUZZ_SECONDS),600)

# Side by side against other programs; writes docs/performance.md. IPERF3, NEPER, RIPERF3, XFR … name those that are not
# on the PATH, RUNS and SECONDS_EACH how much is measured: three quarters of an hour by default,
# up to three times that where the hypervisor keeps taking the CPUs.
bench: build
	cargo build --profile $(PROFILE) --locked -p linerate-kernel --example limit --example pacing
	bench/run.sh $(LINERATE)
	bench/sampling.sh $(LINERATE)

# Whether linerate is still ahead of iperf3, and how near to the limit, by ratios: three minutes.
bench-check: build
	cargo build --profile $(PROFILE) --locked -p linerate-kernel --example limit
	bench/check.sh $(LINERATE)
