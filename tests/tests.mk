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
	$(Q)echo "as an ordinary user:"
	$(Q)tests/as-user tests/run $(LIVE)
	$(Q)echo "overlays by path, as before Linux 6.13:"
	$(Q)DSEC_TEST_LAYERS_BY_PATH=1 tests/run $(B)/tests/live/test_sandbox $(B)/tests/live/test_isolation


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

# --- what a stranger would check ---

# Exports are those listed, version, map and .pc agree, and an installed copy builds a program in C and in C++.
check-abi: lib
	$(Q)tests/abi/check.sh $(B) $(VERSION)

# cppcheck knows no cleanup attributes: leaks are the sanitizers' part. Man pages against headers, examples compiled, spelling, scripts; the other compiler, with warnings as errors.
check-style: $(B)/deps.ok | $(B)/check-deps.ok
	$(Q)$(PYTHON) tests/style/check_man.py
	$(Q)shellcheck .ci/run .ci/deps tests/run tests/as-user tests/abi/check.sh
	$(Q)codespell -q 3 -L ans,nd,hist,mis,ois README.md include lib man examples/*.c examples/*.py tests/*/*.c
	$(Q)cppcheck -q --std=c11 --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem \
		--suppress=memleak --suppress=resourceLeak --suppress=internalAstError --error-exitcode=1 \
		-D_GNU_SOURCE -Iinclude lib
	$(Q)for f in $(LIB_SRC); do clang -std=gnu11 -D_GNU_SOURCE -Iinclude $(WARN) -Werror -fsyntax-only $$f || exit 1; done

# Units once more, under the address and undefined behaviour sanitizers.
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -O1 -g
SAN_OBJ := $(LIB_SRC:%.c=$(B)/san/%.o)
$(B)/san/%.o: %.c | $(B)/deps.ok
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) $(SAN) -MMD -MP -c $< -o $@

$(B)/san/libdsec.a: $(SAN_OBJ) $(B)/obj/lib/node/helper_image.o
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

SAN_UNIT := $(patsubst $(B)/tests/unit/%,$(B)/san/unit/%,$(UNIT))
$(B)/san/unit/%: tests/unit/%.c $(B)/san/libdsec.a | $(B)/check-deps.ok
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SAN) -Ilib -o $@ $< $(B)/san/libdsec.a -lcmocka -lseccomp -lcap-ng -pthread

# The library's own side of the live tests too; the helper's processes are the ordinary ones.
SAN_LIVE := $(patsubst $(B)/tests/live/%,$(B)/san/live/%,$(LIVE))
$(B)/san/live/%: tests/live/%.c $(LIVE_HELP) $(wildcard tests/live/*.h) $(B)/san/libdsec.a | $(B)/check-deps.ok
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SAN) -o $@ $< $(LIVE_HELP) $(B)/san/libdsec.a -lcmocka -pthread

check-sanitize: $(SAN_UNIT) $(SAN_LIVE)
	$(Q)tests/run $(SAN_UNIT) $(SAN_LIVE)

check-python: python
	$(Q)$(B)/venv/bin/python -m mypy --strict bindings/python/dsec
	$(Q)$(B)/venv/bin/python -m pytest -q -p no:cacheprovider tests/python

.PHONY: check check-abi check-style check-sanitize check-python
check: check-unit check-live check-abi check-style check-sanitize check-fault check-python
