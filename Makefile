# tallyd - counts people on the web.  README.md says what the targets are for.
.DEFAULT_GOAL := all

B ?= build
ifeq ($(origin CC),default)
CC = gcc
endif
PYTHON ?= /usr/bin/python3
V ?= @

# ---- what it needs ---------------------------------------------------------------------------------
# Debian 12 packages; `make run` and `make test` install what is missing, with sudo where not root.
PACKAGES_BUILD = gcc libc6-dev libmicrohttpd-dev libjansson-dev libhiredis-dev libxxhash-dev \
  libsodium-dev libcurl4-openssl-dev zlib1g-dev liblz4-dev libyaml-dev libmaxminddb-dev libjs-chart.js esbuild
PACKAGES_RUN = redis-server tzdata libcurl4
PACKAGES_TEST = libcriterion-dev python3 python3-pytest python3-pytest-xdist python3-yaml python3-jsonschema curl openssl \
  clang-format clang-tidy cppcheck clang libclang-rt-14-dev spin
# What a test skips, with a word, where it is missing: a writer of databases of countries, a browser for the dashboard, a Prometheus, Node for its client, a linter of YAML.
PACKAGES_LOOK = libmaxmind-db-writer-perl chromium chromium-driver python3-selenium prometheus nodejs yamllint

# ---- how it is built -------------------------------------------------------------------------------
CFLAGS_WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
  -Wswitch-enum -Wvla -Wundef -Wpointer-arith -Wcast-qual -Wwrite-strings -Werror
CFLAGS_OPT ?= -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
# -ffp-contract=off: the HyperLogLog estimate must be Redis's to the last bit
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -I. -pthread -ffp-contract=off $(CFLAGS_WARN) $(CFLAGS_OPT) \
  $(SAN) $(CFLAGS)
LDLIBS_ALL = $(SAN) -pthread -lmicrohttpd -ljansson -lhiredis -lxxhash -lsodium -lmaxminddb -lz -llz4 -lm

# Every source of the service, however deep its folder lies; but the tool that the build itself runs is not one.
ALL_C := $(sort $(shell find storage handlers service -name '*.c'))
YAML_TO_JSON = service/ops/yaml_to_json
SRC := $(filter-out $(YAML_TO_JSON).c,$(ALL_C))
OBJ := $(SRC:%.c=$(B)/%.o)
LIB_OBJ := $(filter-out $(B)/service/main.o,$(OBJ))
UNIT_SRC := $(sort $(shell find tests/unit -name '*.c') $(wildcard tests/lib/*.c))
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/%.o)
PRELOADS := $(patsubst tests/preload/%.c,$(B)/tools/%.so,$(wildcard tests/preload/*.c))
TOOLS := $(patsubst tests/tools/%.c,$(B)/tools/%,$(wildcard tests/tools/*.c)) $(PRELOADS)
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
C_FILES := $(sort $(ALL_C) $(shell find storage handlers service tests -name '*.[ch]'))

.PHONY: all run deps deps-run deps-test test check units lint lint-openapi integration test-asan test-tsan \
  fuzz fuzz-regressions model model-short format clean coverage install uninstall docs

all: $(B)/tallyd

$(B)/tallyd: $(OBJ)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

# tests/lib/stand_in.h: a test may put its own clock and Redis in the place of these.
UNIT_WRAP = $(foreach f,monotonic_us monotonic_ms redis_ask redis_ask_all session_open session_close session_lost \
  dispatcher_begin dispatcher_end dispatcher_send dispatcher_send_unchanged dispatcher_await transaction_run statvfs,-Wl,--wrap=$(f))

$(B)/unit-tests: $(UNIT_OBJ) $(LIB_OBJ)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) $(UNIT_WRAP) -o $@ $^ -lcriterion $(LDLIBS_ALL)

$(B)/tools/%: $(B)/tests/tools/%.o $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

# A library before all others: no sanitizer, and no hardening that gives these calls other names.
$(B)/tools/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS_WARN) -O2 -g -fPIC -shared -pthread -o $@ $<

# The bare server has libmicrohttpd's functions, not those that the service puts in front of them.
$(B)/bench/bare_mhd: $(B)/tests/bench/bare_mhd.o
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $< $(LDLIBS_ALL)

$(B)/bench/%: $(B)/tests/bench/%.o $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(V)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/storage/redis/script.o: $(wildcard storage/lua/*.lua)

# openapi.yaml is built in as it is, and as JSON
$(B)/$(YAML_TO_JSON): $(B)/$(YAML_TO_JSON).o
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(SAN) -lyaml -ljansson

$(B)/openapi.json: openapi.yaml $(B)/$(YAML_TO_JSON)
	@echo "  JSON $@"
	$(V)$(B)/$(YAML_TO_JSON) $< >$@.new && mv $@.new $@

$(B)/service/ops/api_description.o: openapi.yaml $(B)/openapi.json
$(B)/service/ops/api_description.o: private CFLAGS_ALL += -Wa,-I$(B)

# so are tally.js, the dashboard's files and Chart.js, each with its ETag.  Comments, indentation and long names stay here,
# and the quotes that HTML does not need.  esbuild makes the style small, and one small script of each page's modules.
CHART_JS ?= /usr/share/javascript/chart.js/chart.min.js
ESBUILD = esbuild --log-level=warning --charset=utf8 --minify
WEB_JS := $(filter-out %/tally.js,$(wildcard handlers/web/*.js))
WEB := $(addprefix $(B)/web/,index.html ops.html style.css app.js ops.js icon.svg chart-license.txt)

$(B)/web/%.js: handlers/web/%.js $(WEB_JS)
	$(V)$(ESBUILD) --format=esm --bundle --outfile=$@ $<

$(B)/web/%.css: handlers/web/%.css
	$(V)$(ESBUILD) --outfile=$@ $<

$(B)/web/%.html: handlers/web/%.html
	@mkdir -p $(@D)
	$(V)sed 's/^ *//; s/="\([A-Za-z0-9_.:/-]\+\)"/=\1/g' $< >$@

$(B)/web/%: handlers/web/%
	@mkdir -p $(@D)
	$(V)cp $< $@

$(B)/web/%.tag: $(B)/web/%
	$(V)printf '"%.24s"' "$$(sha256sum <$<)" >$@

$(B)/web/tally.js.tag: handlers/web/tally.js
	@mkdir -p $(@D)
	$(V)printf '"%.24s"' "$$(sha256sum <$<)" >$@

$(B)/web/chart.min.js.tag: $(CHART_JS)
	@mkdir -p $(@D)
	$(V)printf '"%.24s"' "$$(sha256sum <$<)" >$@

# without --respect-dnt: tally.js but for the line that asks the browser for Do-Not-Track
$(B)/web/tally_all.js: handlers/web/tally.js
	@mkdir -p $(@D)
	$(V)grep -v doNotTrack $< >$@

$(B)/web/tally_all.js.tag: $(B)/web/tally_all.js
	$(V)printf '"%.24s"' "$$(sha256sum <$<)" >$@

$(B)/handlers/web/tally_js.o: $(addprefix $(B)/web/,tally.js.tag tally_all.js tally_all.js.tag)
$(B)/handlers/web/tally_js.o: private CFLAGS_ALL += -Wa,-I$(B)
$(B)/handlers/web/dashboard.o: $(WEB) $(CHART_JS) $(WEB:=.tag) $(B)/web/chart.min.js.tag
$(B)/handlers/web/dashboard.o: private CFLAGS_ALL += -Wa,-I$(B) -Wa,-I$(dir $(CHART_JS))

-include $(OBJ:.o=.d) $(UNIT_OBJ:.o=.d) $(wildcard $(foreach d,tools bench oom fuzz,$(B)/tests/$d/*.d))

# ---- running ---------------------------------------------------------------------------------------
# $(call need,packages): install those that are missing.  Where there is no dpkg nobody knows; the compiler will say.
need = missing=""; command -v dpkg-query >/dev/null && for p in $(1); do \
    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
  if [ -n "$$missing" ]; then \
    if ! command -v apt-get >/dev/null; then \
      echo "these Debian packages (or the like) are missing:$$missing" >&2; exit 1; fi; \
    sudo=; if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi; \
    if [ -n "$$sudo" ] && ! command -v sudo >/dev/null; then \
      echo "as root: apt-get install$$missing" >&2; exit 1; fi; \
    echo "installing:$$missing"; \
    $$sudo apt-get update -qq && \
    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing \
      >/dev/null || { echo "could not install:$$missing" >&2; exit 1; }; fi

# $(call have,commands): one line if one is not there
have = for c in $(1); do command -v $$c >/dev/null || { \
    echo "$$c is missing; as root: apt-get install $$c" >&2; exit 1; }; done

.PHONY: have-lint have-clang
have-lint:
	@$(call have,clang-format clang-tidy cppcheck)

have-clang:
	@$(call need,clang libclang-rt-14-dev)
	@$(call have,clang)

deps-run:
	@$(call need,$(PACKAGES_BUILD) $(PACKAGES_RUN))

deps-test:
	@$(call need,$(PACKAGES_BUILD) $(PACKAGES_RUN) $(PACKAGES_TEST))
	@($(call need,$(PACKAGES_LOOK))) || echo "(the tests that need them will be skipped)"

run: deps-run
	@$(MAKE) --no-print-directory all
	exec $(B)/tallyd serve --data-dir ./data

# A tallyd with two months of synthetic traffic, in a directory of its own that goes away with it.
.PHONY: demo
DEMO_LISTEN ?= 127.0.0.1:8080
demo: deps-run
	@$(call need,python3 curl)
	@$(MAKE) --no-print-directory all
	@PYTHON=$(PYTHON) sh deploy/demo.sh $(B)/tallyd $(DEMO_LISTEN)

# ---- installing ------------------------------------------------------------------------------------
# make install PREFIX=/usr DESTDIR=/tmp/package; deploy/README.md says what to do then.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
UNITDIR ?= $(PREFIX)/lib/systemd/system
DOCDIR ?= $(PREFIX)/share/doc/tallyd
# Every page, and all of deploy/: but for those to sources, each link of a page leads somewhere.
DOCS = README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE openapi.yaml \
  $(shell find service handlers storage tests -name '*.md' ! -path '*/node_modules/*' | sort) \
  $(shell find deploy -type f ! -path '*/node_modules/*' ! -path '*/__pycache__/*' ! -path '*/.*' ! -name package-lock.json | sort)

UNITS = tallyd.service tallyd-follow@.service

# The directories go into the unit files, where other characters would have to be escaped.
plain = for d in "$(BINDIR)" "$(UNITDIR)" "$(DOCDIR)"; do case "$$d" in \
    [!/]*|""|*[!A-Za-z0-9/._+-]*) \
      echo "PREFIX (BINDIR, UNITDIR, DOCDIR) must begin with / and have letters, digits and / . _ + - only: $$d" >&2; \
      exit 1;; esac; done

install: $(B)/tallyd
	@$(plain)
	install -D -m 755 $(B)/tallyd "$(DESTDIR)$(BINDIR)/tallyd"
	@install -d "$(DESTDIR)$(UNITDIR)"
	@for f in $(DOCS); do install -D -m 644 $$f "$(DESTDIR)$(DOCDIR)/$$f" || exit 1; done
	for u in $(UNITS); do \
	  sed -i -e 's|^ExecStart=/usr/bin/|ExecStart=$(BINDIR)/|' -e 's|file:/usr/share/doc/tallyd/|file:$(DOCDIR)/|' \
	    "$(DESTDIR)$(DOCDIR)/deploy/$$u" && install -m 644 "$(DESTDIR)$(DOCDIR)/deploy/$$u" "$(DESTDIR)$(UNITDIR)" || exit 1; done
	@echo "  installed below $(DESTDIR)$(PREFIX)"

# What install has put there, and no data.
uninstall:
	@$(plain)
	rm -f "$(DESTDIR)$(BINDIR)/tallyd"
	for u in $(UNITS); do rm -f "$(DESTDIR)$(UNITDIR)/$$u"; done
	@for f in $(DOCS); do rm -f "$(DESTDIR)$(DOCDIR)/$$f"; done
	@[ ! -d "$(DESTDIR)$(DOCDIR)" ] || find "$(DESTDIR)$(DOCDIR)" -depth -type d -empty -delete

# tallyd_VERSION_ARCH.deb in this directory; `apt install ./tallyd_*.deb` needs nothing else.
.PHONY: deb
PACKAGES_DEB = dpkg-dev debhelper fakeroot
deb: deps-run
	@$(call need,$(PACKAGES_DEB))
	$(V)sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog | grep -qxF "$$(sed -n 's/.*TALLYD_VERSION "\(.*\)".*/\1/p' service/ops/version.h)" || \
	  { echo "debian/changelog and service/ops/version.h name different versions" >&2; exit 1; }
	$(V)rm -f tallyd_*.deb
	fakeroot debian/rules binary
	$(V)fakeroot debian/rules clean
	@ls -l tallyd_*.deb

# The package linted, and installed on a bare Debian root (as root).
.PHONY: test-deb
test-deb: deps-run
	@$(call need,$(PACKAGES_DEB) lintian debootstrap curl)
	@sh tests/deb.sh $(B)/deb-root

# The tables of options, metrics and dependencies in deploy/; tests compare them.
docs: $(B)/tallyd
	TALLYD_BIN=$(B)/tallyd $(PYTHON) -B tests/contract/document.py
	$(PYTHON) -B deploy/sbom.py table $(B)/tallyd >deploy/DEPENDENCIES.md

# What this build is made of, as CycloneDX.
.PHONY: sbom
sbom: $(B)/tallyd
	$(PYTHON) -B deploy/sbom.py cyclonedx $< >$(B)/tallyd.cdx.json

# ---- testing ---------------------------------------------------------------------------------------
units: $(B)/unit-tests
	$(B)/unit-tests -j2

# Slow checks are done again only for what has changed: one stamp a file.
TIDY := $(SRC:%.c=$(B)/lint/%.tidy)
ANALYZED := $(SRC:%.c=$(B)/lint/%.analyzed)

# Of a function clang's analyzer looks at so many states; its own limit is 225000, and takes twice as long in all.
TIDY_STATES ?= 75000

$(B)/lint/%.tidy: %.c .clang-tidy | have-lint
	@mkdir -p $(@D)
	@echo "  TIDY $<"
	$(V)clang-tidy -quiet $< -- -std=c11 -D_GNU_SOURCE -I. -Xclang -analyzer-config -Xclang max-nodes=$(TIDY_STATES) 2>$@.log >$@.out || { cat $@.out; exit 1; }
	@touch $@

# malloc-leak: gcc 12 does not follow ownership through structures; LeakSanitizer does (make test-asan)
$(B)/lint/%.analyzed: %.c
	@mkdir -p $(@D)
	@echo "  ANALYZE $<"
	$(V)$(CC) $(CFLAGS_ALL) -fanalyzer -Wno-analyzer-malloc-leak -S -o /dev/null $<
	@touch $@

lint: have-lint $(TIDY) $(ANALYZED)
	@sh tests/lint/lint.sh $(C_FILES)

# openapi.yaml by redocly and spectral, where npm is there
lint-openapi:
	@sh tests/contract/lint.sh $(B)/npm

check: deps-test
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(B)/unit-tests
	@$(MAKE) --no-print-directory -j2 lint
	@$(MAKE) --no-print-directory units

# What failed is run once more, by itself: some tests kill and cut against the clock, and a machine shared with others may
# stand still for longer than they allow.  The first run's failures stay in the output.
# Four files at a time, where pytest can; TESTS='-n 0' is one after another.
PARALLEL = $(shell $(PYTHON) -c 'import xdist' 2>/dev/null && echo '-n 4 --dist loadfile')
PYTEST = TALLYD_BIN=$(B)/tallyd TALLYD_TOOLS=$(B)/tools $(PYTHON) -B -m pytest -q -c tests/integration/pytest.ini --rootdir tests \
  -o addopts= -o cache_dir=$(abspath $(B))/pytest-cache

integration: $(B)/tallyd $(TOOLS)
	@rm -rf $(B)/pytest-cache
	$(PYTEST) $(PARALLEL) tests/integration tests/contract $(TESTS) || { [ $$? = 1 ] && \
	  echo "Some tests failed; once more, by themselves:" && $(PYTEST) --lf --lfnf none tests/integration tests/contract $(TESTS); }

# What needs a cluster or Sentinels, alone; TALLYD_REDIS_SERVER=valkey-server runs it on Valkey.
.PHONY: test-cluster
test-cluster: deps-test
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(TOOLS)
	@$(MAKE) --no-print-directory integration TESTS='-m cluster $(TESTS)'

# Every allocation on the way of POST /events, of each question, of a start, of a SIGHUP and of the commands of a client fails
# once; of questions, a start, a SIGHUP and what asks Redis itself on a cluster, too.  OOM_STEP=3: every third.
OOM_WRAP = $(foreach f,malloc calloc realloc reallocarray strdup asprintf __asprintf_chk free curl_easy_perform \
  MHD_create_response_from_buffer,-Wl,--wrap=$(f))
OOM_STEP ?= 1
OOM_PARTS := $(patsubst %,$(B)/tests/oom/%.o,service serving client failing_alloc)
OOM_ALONE := post_events questions start imports queries
OOM := $(OOM_ALONE:%=$(B)/oom/%)

$(B)/oom/%: $(B)/tests/oom/%.o $(OOM_PARTS) $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) $(OOM_WRAP) -o $@ $^ $(LDLIBS_ALL)

.PHONY: test-oom oom-cluster $(OOM_ALONE:%=oom-%)
$(OOM_ALONE:%=oom-%): oom-%: $(B)/oom/%
	$< $(OOM_STEP)

oom-cluster: $(B)/oom/questions $(B)/oom/start $(B)/oom/queries
	sh tests/oom/cluster.sh $(B)/oom/questions $(OOM_STEP)
	sh tests/oom/cluster.sh $(B)/oom/start $(OOM_STEP)
	sh tests/oom/cluster.sh $(B)/oom/queries $(OOM_STEP)

test-oom: deps-run
	@$(MAKE) --no-print-directory -j2 $(OOM_ALONE:%=oom-%) oom-cluster

# Everything but the sanitizers; its last lines are the test runner's.
MUTANTS ?= 60
test: check
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(TOOLS) $(OOM) fuzz-regressions
	@MUTANTS=$(MUTANTS) $(MAKE) --no-print-directory -j3 OOM_STEP=23 $(OOM_ALONE:%=oom-%) oom-cluster model-short
	@$(MAKE) --no-print-directory integration

# The same, with every case and every wrong rule of which `make test` tries some, by chance.
.PHONY: test-all
test-all:
	@TALLYD_ALL=1 MUTANTS= $(MAKE) --no-print-directory test TIDY_STATES=225000

# The protocol's models (tests/model/README.md): `make test` runs a part of the short set, `make model` all.
model-short: deps-test
	@mkdir -p $(B)
	@sh tests/model/run.sh short >$(B)/model-short.log || { cat $(B)/model-short.log; exit 1; }
	@tail -1 $(B)/model-short.log

model: deps-test
	@sh tests/model/run.sh all

# Kills and cuts by the hundred, malformed requests, slow connections, failovers, a cluster's nodes: about forty minutes.  The
# seed is printed, TALLYD_SEED= repeats it; TALLYD_KILLS=, TALLYD_REQUESTS=, TALLYD_SLOW=, TALLYD_FAILOVERS= and TALLYD_ROUNDS=
# say how many; TALLYD_SWEEPS=0 leaves out calls and replies one by one.  What is stopped goes on with the next run.
.PHONY: test-faults soak
test-faults: deps-run
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(PRELOADS)
	TALLYD_BIN=$(B)/tallyd $(PYTHON) -B tests/integration/campaign.py

# Kills alone, until tests/RECORD.md has KILLS of them from all machines together; commit that file.
KILLS ?= 10000
.PHONY: kills
kills: deps-run
	@$(MAKE) --no-print-directory $(B)/tallyd
	TALLYD_BIN=$(B)/tallyd TALLYD_KILLS=$(KILLS) TALLYD_RECORD=tests/RECORD.md $(PYTHON) -B tests/integration/campaign.py

# Does anything grow, or drift?  SOAK_MINUTES=120 of mixed load, and SOAK_DAYS=14 on a moved clock.
soak: deps-test
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(PRELOADS)
	TALLYD_BIN=$(B)/tallyd TALLYD_TOOLS=$(B)/tools $(PYTHON) -B tests/integration/soak.py

# A sanitizer's report is a file in its log directory: any such file fails the target, whatever the
# test runner made of the exit status.
test-asan: deps-test
	@sh tests/sanitize.sh address "$(MAKE)"

test-tsan: deps-test
	@sh tests/sanitize.sh thread "$(MAKE)"

# ---- fuzzing ---------------------------------------------------------------------------------------
FUZZ_SECONDS ?= 60
FUZZ_HOURS ?=
FUZZ_CC = clang -std=c11 -D_GNU_SOURCE -I. -O1 -g -ffp-contract=off \
  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
FUZZED := storage/time/zone.c storage/time/zone_rule.c storage/time/zone_file.c storage/time/bucket.c storage/sketch/bloom.c storage/sketch/hll.c storage/sketch/hll_simd.c \
  $(wildcard handlers/ingest/event_*.c) handlers/text/json_scan.c handlers/text/json_text.c handlers/text/check.c handlers/reply/json_memory.c handlers/grafana/names.c handlers/limit/limit_json.c handlers/ingest/plausible_event.c storage/job/limit.c service/options/limit_option.c service/options/option_value.c handlers/text/params.c handlers/text/calendar.c handlers/text/timestamp.c handlers/text/utf8.c handlers/text/plain.c handlers/text/network.c handlers/text/robots.c handlers/text/robots_cache.c handlers/text/url.c handlers/ingest/segment_json.c handlers/ingest/segment_message.c $(wildcard handlers/access/*.c handlers/filter/*.c) handlers/question/question.c handlers/question/window_reply.c handlers/counts/seen.c handlers/counts/seen_json.c handlers/text/json_value.c handlers/counts/page_sets.c $(addprefix handlers/reply/,json_body.c json_object.c problem.c query.c reply.c state.c) $(wildcard handlers/dimension/*.c) storage/job/dimension.c $(wildcard service/formats/*.c) service/client/follow/follow_state.c \
  $(addprefix storage/,job/job.c job/error.c job/queue.c job/window_job.c job/first_job.c job/request_key.c schema/first_note.c log/chunk_read.c log/chunk_write.c log/entry.c log/entry_users.c log/packed.c redis/reply.c redis/resp.c schema/identity.c schema/partition.c schema/key.c schema/deletion_record.c schema/tombstones.c deletion/found.c base/arena.c base/buffer.c base/index.c base/regular_file.c hot/published.c job/hot_page.c) \
  $(addprefix storage/,cluster/slot_map.c cluster/redirect.c cluster/view.c redis/address.c) tests/lib/reply_notation.c
FUZZED_OBJ := $(FUZZED:%.c=$(B)/fuzz/obj/%.o)

$(B)/fuzz/obj/%.o: %.c | have-clang
	@mkdir -p $(@D)
	@echo "  FUZZ $<"
	$(V)$(FUZZ_CC) -MMD -MP -c -o $@ $<

# An archive: a target links what it needs.
$(B)/fuzz/fuzzed.a: $(FUZZED_OBJ)
	$(V)rm -f $@ && ar rcs $@ $^

$(B)/fuzz/%: tests/fuzz/fuzz_%.c $(B)/fuzz/fuzzed.a
	@echo "  FUZZ $@"
	$(V)$(FUZZ_CC) -o $@ $^ -ljansson -lxxhash -lsodium -lmaxminddb -llz4

-include $(FUZZED_OBJ:.o=.d)

# Every input that is kept, once.
FUZZ_KEPT := $(FUZZ:%=%-kept)
.PHONY: $(FUZZ_KEPT)
$(FUZZ_KEPT): %-kept: %
	@$< -runs=0 tests/fuzz/corpus/$(<F) >$<.log 2>&1 || { cat $<.log; exit 1; }

fuzz-regressions: $(FUZZ_KEPT)
	@echo "fuzz corpora: $(words $(FUZZ)) passed"

# Every target for FUZZ_SECONDS; FUZZ_HOURS=8: piece by piece until all together had so many hours of CPU, over all runs of all
# machines: tests/RECORD.md has the sums; commit that file.
fuzz: $(FUZZ)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_HOURS=$(FUZZ_HOURS) $(PYTHON) -B tests/fuzz/campaign.py $(FUZZ)

# What the fuzzers have found since goes into the corpora: those inputs that reach a new edge, as few as do.
.PHONY: fuzz-keep
fuzz-keep: $(FUZZ)
	@for f in $(FUZZ); do [ ! -d $$f.new ] || $$f -merge=1 -set_cover_merge=1 -use_counters=0 tests/fuzz/corpus/$$(basename $$f) $$f.new >$$f.log 2>&1 || \
	  { tail -40 $$f.log; exit 1; }; done

# ---- benchmark -------------------------------------------------------------------------------------
# What one would build instead; a system's own nginx and webdis that apt may start are not used.
PACKAGES_PEERS = wrk webdis nginx libnginx-mod-http-lua lua-nginx-redis lua-cjson goaccess \
  postgresql-15 postgresql-15-hll python3-psycopg2

.PHONY: bench bench-against bench-peers

bench: deps-run
	@$(call need,python3 wrk)
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(BENCH)
	@BENCH_BUILD=$(abspath $(B)) $(PYTHON) -B tests/bench/bench.py

# The same loads with another build, in turn: make bench-against BASE=../tallyd-before/build/tallyd
bench-against: deps-run
	@test -x "$(BASE)" || { echo "make bench-against BASE=PROGRAM: the tallyd of another build" >&2; exit 2; }
	@$(call need,python3 wrk)
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(BENCH)
	@BENCH_BUILD=$(abspath $(B)) $(PYTHON) -B tests/bench/against.py $(BASE)

bench-peers: deps-run
	@$(call need,$(PACKAGES_PEERS))

# Lines and branches of our own code, by folder, that units, fuzz corpora, tests without memory and integration tests take.  (A
# process that a test kills tells nothing.)  The table is printed also if a test failed, which then fails the target.
# COVERAGE_PARTS="units replay oom": without the integration tests, in a minute; what was counted before stays until `make
# coverage-new`.
COVERAGE_PARTS ?= units replay oom integration
COVERAGE = B=build/coverage CFLAGS_OPT="-O0 -g" SAN="--coverage -fprofile-update=atomic"
REPLAYS := $(FUZZ:$(B)/fuzz/%=$(B)/replay/%)

$(B)/replay/%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(B)/tests/lib/reply_notation.o $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

.PHONY: coverage-new coverage-units coverage-replay coverage-oom coverage-integration replays
replays: $(REPLAYS)

coverage-units:
	@$(MAKE) --no-print-directory -j2 $(COVERAGE) build/coverage/unit-tests
	build/coverage/unit-tests -j2

coverage-replay:
	@$(MAKE) --no-print-directory -j2 $(COVERAGE) replays
	@for f in $(notdir $(FUZZ)); do build/coverage/replay/$$f tests/fuzz/corpus/$$f build/fuzz/$$f.new || exit 1; done

coverage-oom:
	@$(MAKE) --no-print-directory -j2 $(COVERAGE) $(OOM_ALONE:%=build/coverage/oom/%)
	build/coverage/oom/post_events 7
	build/coverage/oom/questions 3
	build/coverage/oom/start 1
	sh tests/oom/cluster.sh build/coverage/oom/questions 7
	sh tests/oom/cluster.sh build/coverage/oom/start 3
	build/coverage/oom/imports 2
	build/coverage/oom/queries 1
	sh tests/oom/cluster.sh build/coverage/oom/queries 3

coverage-integration:
	@$(MAKE) --no-print-directory -j2 $(COVERAGE) build/coverage/tallyd
	@$(MAKE) --no-print-directory $(COVERAGE) integration

coverage-new:
	@[ ! -d build/coverage ] || find build/coverage -name '*.gcda' -delete

coverage:
	@$(call need,$(PACKAGES_BUILD) $(PACKAGES_RUN) $(PACKAGES_TEST) gcovr)
	@rm -f build/coverage/failed; mkdir -p build/coverage
	@for part in $(COVERAGE_PARTS); do $(MAKE) --no-print-directory coverage-$$part || touch build/coverage/failed; done
	gcovr -r . --object-directory build/coverage -f storage/ -f handlers/ -f service/ -e $(YAML_TO_JSON).c \
	  --exclude-unreachable-branches --exclude-throw-branches --branches --txt build/coverage/report.txt \
	  --json-summary build/coverage/summary.json
	@$(PYTHON) -B tests/coverage.py build/coverage/summary.json
	@[ ! -e build/coverage/failed ]

format: have-lint
	$(V)clang-format -i $(C_FILES)

clean:
	rm -rf build tallyd_*.deb
