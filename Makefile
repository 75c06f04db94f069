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
  libsodium-dev libcurl4-openssl-dev zlib1g-dev
PACKAGES_RUN = redis-server
PACKAGES_TEST = libcriterion-dev python3 python3-pytest libfaketime clang-format cppcheck \
  clang libclang-rt-14-dev

# ---- how it is built -------------------------------------------------------------------------------
CFLAGS_WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
  -Wswitch-enum -Wvla -Wundef -Wpointer-arith -Wcast-qual -Wwrite-strings -Werror
CFLAGS_OPT ?= -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
# -ffp-contract=off: the HyperLogLog estimate must be Redis's to the last bit
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -I. -pthread -ffp-contract=off $(CFLAGS_WARN) $(CFLAGS_OPT) \
  $(SAN) $(CFLAGS)
LDLIBS_ALL = $(SAN) -pthread -lmicrohttpd -ljansson -lhiredis -lxxhash -lsodium -lcurl -lz -lm

SRC := $(wildcard storage/*.c handlers/*.c service/*.c service/client/*.c)
OBJ := $(SRC:%.c=$(B)/%.o)
LIB_OBJ := $(filter-out $(B)/service/main.o,$(OBJ))
UNIT_SRC := $(wildcard tests/unit/*/*.c tests/lib/*.c)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/%.o)
TOOLS := $(patsubst tests/tools/%.c,$(B)/tools/%,$(wildcard tests/tools/*.c))
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
C_FILES := $(SRC) $(UNIT_SRC) $(wildcard storage/*.h handlers/*.h service/*.h service/client/*.h \
  tests/*/*.h tests/unit/*/*.h tests/tools/*.c tests/bench/*.c tests/fuzz/*.c)

.PHONY: all run deps deps-run deps-test test check units lint integration test-asan test-tsan \
  fuzz fuzz-regressions format clean

all: $(B)/tallyd

$(B)/tallyd: $(OBJ)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(B)/unit-tests: $(UNIT_OBJ) $(LIB_OBJ)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ -lcriterion $(LDLIBS_ALL)

$(B)/tools/%: $(B)/tests/tools/%.o $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(B)/bench/%: $(B)/tests/bench/%.o $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(V)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/storage/script.o: $(wildcard storage/lua/*.lua)

-include $(OBJ:.o=.d) $(UNIT_OBJ:.o=.d) $(wildcard $(B)/tests/tools/*.d $(B)/tests/bench/*.d)

# ---- running ---------------------------------------------------------------------------------------
# $(call need,packages): install those that are missing
need = missing=""; for p in $(1); do \
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

deps-run:
	@$(call need,$(PACKAGES_BUILD) $(PACKAGES_RUN))

deps-test:
	@$(call need,$(PACKAGES_BUILD) $(PACKAGES_RUN) $(PACKAGES_TEST))

run: deps-run
	@$(MAKE) --no-print-directory all
	exec $(B)/tallyd serve --data-dir ./data

# ---- testing ---------------------------------------------------------------------------------------
units: $(B)/unit-tests
	$(B)/unit-tests -j2

lint:
	@sh tests/lint/lint.sh $(C_FILES)

check: deps-test
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(B)/unit-tests
	@$(MAKE) --no-print-directory lint units

integration: $(B)/tallyd $(TOOLS)
	TALLYD_BIN=$(B)/tallyd TALLYD_TOOLS=$(B)/tools $(PYTHON) -B -m pytest -q tests/integration $(TESTS)

# Everything but the sanitizers; its last lines are the test runner's.
test: check
	@$(MAKE) --no-print-directory -j2 $(B)/tallyd $(TOOLS) fuzz-regressions
	@$(MAKE) --no-print-directory integration

# A sanitizer's report is a file in its log directory: any such file fails the target, whatever the
# test runner made of the exit status.
test-asan: deps-test
	@sh tests/sanitize.sh address "$(MAKE)"

test-tsan: deps-test
	@sh tests/sanitize.sh thread "$(MAKE)"

# ---- fuzzing ---------------------------------------------------------------------------------------
FUZZ_SECONDS ?= 60
FUZZ_CC = clang -std=c11 -D_GNU_SOURCE -I. -O1 -g -ffp-contract=off \
  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
FUZZED := storage/zone.c storage/bucket.c storage/hll.c $(wildcard handlers/event_*.c \
  handlers/json_*.c) handlers/params.c handlers/timestamp.c handlers/utf8.c service/client/access_log.c
FUZZED_OBJ := $(FUZZED:%.c=$(B)/fuzz/obj/%.o)

$(B)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  FUZZ $<"
	$(V)$(FUZZ_CC) -MMD -MP -c -o $@ $<

$(B)/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZED_OBJ)
	@echo "  FUZZ $@"
	$(V)$(FUZZ_CC) -o $@ $^

-include $(FUZZED_OBJ:.o=.d)

# Every input that is kept, once.
fuzz-regressions: $(FUZZ)
	@for f in $(FUZZ); do $$f -runs=0 tests/fuzz/corpus/$$(basename $$f) >$$f.log 2>&1 || \
	  { cat $$f.log; exit 1; }; done; echo "fuzz corpora: $(words $(FUZZ)) passed"

fuzz: $(FUZZ)
	@for f in $(FUZZ); do mkdir -p $$f.new; echo $$f; \
	  $$f -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$$f. $$f.new tests/fuzz/corpus/$$(basename $$f) \
	  >$$f.log 2>&1 || { tail -40 $$f.log; exit 1; }; done

format:
	clang-format -i $(C_FILES)

clean:
	rm -rf build
