# tallyd - see README.md for what the targets do.
.DEFAULT_GOAL := all
B ?= build
ifeq ($(origin CC),default)
CC = gcc
endif
V ?= @
CFLAGS_WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
  -Wswitch-enum -Wvla -Wundef -Wpointer-arith -Wcast-qual -Wwrite-strings -Werror
CFLAGS_OPT ?= -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
# -ffp-contract=off: the HyperLogLog estimate must be Redis's to the last bit
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -I. -pthread -ffp-contract=off $(CFLAGS_WARN) $(CFLAGS_OPT) $(SAN) $(CFLAGS)
LDLIBS_ALL = $(SAN) -pthread -lmicrohttpd -ljansson -lhiredis -lxxhash -lsodium -lcurl -lz -lm

SRC := $(wildcard storage/*.c handlers/*.c service/*.c service/client/*.c)
OBJ := $(SRC:%.c=$(B)/%.o)
LIB_OBJ := $(filter-out $(B)/service/main.o,$(OBJ))
UNIT_SRC := $(wildcard tests/unit/*/*.c tests/lib/*.c)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/%.o)

all: $(B)/tallyd

$(B)/tallyd: $(OBJ)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(B)/unit-tests: $(UNIT_OBJ) $(LIB_OBJ)
	@echo "  LINK $@"
	$(V)$(CC) $(LDFLAGS) -o $@ $^ -lcriterion $(LDLIBS_ALL)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(V)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/storage/script.o: $(wildcard storage/lua/*.lua)

-include $(OBJ:.o=.d) $(UNIT_OBJ:.o=.d)
.PHONY: all
