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

check: check-unit check-live
