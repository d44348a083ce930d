# Tests; included by the top Makefile.

$(B)/check-deps.ok: .ci/deps
	$(Q)mkdir -p $(B)
	$(Q).ci/deps check
	$(Q)touch $@

UNIT := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test_*.c))
LIVE := $(patsubst tests/live/%.c,$(B)/tests/live/%,$(wildcard tests/live/test_*.c))
LIVE_HELP := $(filter-out $(wildcard tests/live/test_*.c),$(wildcard tests/live/*.c))

$(B)/tests/unit/%: tests/unit/%.c $(B)/libdsec-all.a | $(B)/check-deps.ok
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Ilib -o $@ $< $(B)/libdsec-all.a -lcmocka -lseccomp -lcap-ng -pthread

$(B)/tests/live/%: tests/live/%.c $(LIVE_HELP) $(wildcard tests/live/*.h) $(SO) | $(B)/check-deps.ok
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(LIVE_HELP) -L$(B) -ldsec -Wl,-rpath,'$$ORIGIN/../..' -lcmocka -pthread

.PHONY: check-unit check-live
check-unit: $(UNIT)
	$(Q)tests/run $(UNIT)

check-live: $(LIVE)
	$(Q)tests/run $(LIVE)


# --- fault sweep: library and helper of their own, in which each call can be made to fail ---

include tests/fault/wrapped.mk
WRAP_LD := $(foreach s,$(WRAPPED),-Wl,--wrap=$(s))

$(B)/fault/wrap.o: tests/fault/wrap.c tests/fault/fault.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -fPIC -fvisibility=hidden -c $< -o $@

$(B)/fault/dsec-helper: $(B)/obj/lib/node/helper_main.o $(B)/fault/wrap.o $(B)/libdsec-core.a
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) -static-pie -Wl,--gc-sections $(WRAP_LD) -o $@ $^ -lseccomp -lcap-ng $(QUIET_STATIC)

$(B)/fault/helper_image.o: lib/node/helper_image.S $(B)/fault/dsec-helper
	$(Q)$(CC) -DDSEC_HELPER='"$(B)/fault/dsec-helper"' -c $< -o $@

$(B)/fault/sweep: tests/fault/sweep.c tests/live/leak.c $(B)/fault/wrap.o $(B)/fault/helper_image.o $(B)/libdsec-core.a
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(WRAP_LD) -o $@ $(filter %.c %.o,$^) $(B)/libdsec-core.a -pthread

check-fault: $(B)/fault/sweep
	$(Q)$(B)/fault/sweep
.PHONY: check-fault

check: check-unit check-live check-fault
