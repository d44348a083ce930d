# dsec: one library, its helper inside it, bindings, examples, tests, benchmarks. Targets: make help
#
# Everything that is built lies below build/. V=1 shows the commands; CC, CFLAGS, PREFIX, DESTDIR, PYTHON as usual.

VERSION := $(shell sed -n 's/^\#define DSEC_VERSION "\(.*\)"/\1/p' include/dsec/types.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

CC ?= cc
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
B := build
# libcap-ng names users, in functions that the helper never calls: the linker would warn of that.
QUIET_STATIC := -Wl,--no-warnings

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wformat=2 -Wno-format-nonliteral
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -Iinclude $(WARN) $(CFLAGS)
LIB_CFLAGS := $(ALL_CFLAGS) -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -pthread

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

LIB_SRC := $(filter-out lib/node/helper_main.c,$(wildcard lib/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)
CORE_OBJ := $(filter $(B)/obj/lib/core/%,$(LIB_OBJ))
HEADERS := $(wildcard include/dsec/*.h)
SO := $(B)/libdsec.so

.PHONY: all lib demo check bench install uninstall deps clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: lib examples

lib: $(SO) $(B)/libdsec.pc

help:
	@echo "all demo demo-python check bench bench-NAME install uninstall deps clean; check-unit check-live check-fault check-python check-style check-abi check-sanitize"

# --- library -----------------------------------------------------------------------------------------------------

$(B)/obj/%.o: %.c | $(B)/deps.ok
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

# All of the library but the embedded helper, which is linked from it.
$(B)/libdsec-core.a: $(LIB_OBJ)
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/dsec-helper: $(B)/obj/lib/node/helper_main.o $(B)/libdsec-core.a
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) -static-pie -Wl,--gc-sections -Wl,-z,relro,-z,now $(QUIET_STATIC) -o $@.full $^ -lseccomp -lcap-ng
	$(Q)strip -o $@ $@.full

$(B)/obj/lib/node/helper_image.o: lib/node/helper_image.S $(B)/dsec-helper
	$(say) AS $<
	$(Q)$(CC) -DDSEC_HELPER='"$(B)/dsec-helper"' -c $< -o $@

$(SO): $(CORE_OBJ) $(B)/obj/lib/node/helper_image.o $(B)/libdsec-core.a lib/libdsec.map
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) -shared -pthread -Wl,-soname,libdsec.so.$(SOVERSION) -Wl,--version-script,lib/libdsec.map \
		-Wl,-z,defs -Wl,-z,relro,-z,now -Wl,--gc-sections \
		-o $@ $(CORE_OBJ) $(B)/obj/lib/node/helper_image.o $(B)/libdsec-core.a
	$(Q)ln -sf libdsec.so $(B)/libdsec.so.$(SOVERSION)

# What unit tests link: every symbol, hidden ones too.
$(B)/libdsec-all.a: $(B)/libdsec-core.a $(B)/obj/lib/node/helper_image.o
	$(say) AR $@
	$(Q)cp $(B)/libdsec-core.a $@.tmp && $(AR) rs $@.tmp $(B)/obj/lib/node/helper_image.o 2>/dev/null && mv $@.tmp $@

PC_EDIT = -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|'
$(B)/libdsec.pc: lib/libdsec.pc.in include/dsec/types.h
	$(Q)sed $(PC_EDIT) $< > $@

-include $(LIB_OBJ:.o=.d)

# --- what must be installed --------------------------------------------------------------------------------------

$(B)/deps.ok: .ci/deps
	$(Q)mkdir -p $(B)
	$(Q).ci/deps
	$(Q)touch $@

deps:
	$(Q).ci/deps

# --- examples ----------------------------------------------------------------------------------------------------

EXAMPLES := $(B)/examples/hello $(B)/examples/rollout
examples: $(EXAMPLES)
.PHONY: examples

EX_CFLAGS := $(ALL_CFLAGS)
EX_LIBS := -L$(B) -ldsec -Wl,-rpath,'$$ORIGIN/..'

$(B)/examples/hello: examples/hello.c $(SO)
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EX_CFLAGS) -o $@ $(filter %.c,$^) $(EX_LIBS)

ROLLOUT_SRC := examples/rollout.c examples/rollout_report.c examples/tasks.c
$(B)/examples/rollout: $(ROLLOUT_SRC) $(wildcard examples/*.h) $(SO)
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EX_CFLAGS) -o $@ $(ROLLOUT_SRC) $(EX_LIBS) -lm

# Runs with directories of its own: a demo shall not meet a user's sandboxes.
DEMO_ENV := DSEC_ROOT=/tmp/dsec-demo DSEC_IMAGES=/tmp/dsec-demo-images
demo: $(B)/examples/rollout
	$(Q)$(DEMO_ENV) $(B)/examples/rollout --prompts 8 --rollouts 8; r=$$?; rm -rf /tmp/dsec-demo /tmp/dsec-demo-images; exit $$r

demo-python: $(B)/venv/dsec.ok
	$(Q)$(DEMO_ENV) $(B)/venv/bin/python examples/rollout.py --prompts 8 --rollouts 8; r=$$?; rm -rf /tmp/dsec-demo /tmp/dsec-demo-images; exit $$r
.PHONY: demo-python

# --- Python ------------------------------------------------------------------------------------------------------

PY_SRC := $(shell find bindings/python -name '*.py' -o -name '*.pyi' -o -name '*.toml' -o -name 'py.typed' 2>/dev/null | grep -v /build/)

$(B)/venv/bin/python: | $(B)/deps.ok
	$(say) VENV $(B)/venv
	$(Q)$(PYTHON) -m venv $(B)/venv
	$(Q)$(B)/venv/bin/pip -q install --disable-pip-version-check cffi setuptools wheel pytest rich mypy types-cffi

$(B)/venv/dsec.ok: $(B)/venv/bin/python $(SO) $(HEADERS) $(PY_SRC)
	$(say) PIP bindings/python
	$(Q)$(B)/venv/bin/pip -q install --disable-pip-version-check --force-reinstall --no-deps --no-build-isolation ./bindings/python
	$(Q)touch $@

python: $(B)/venv/dsec.ok
.PHONY: python

# --- tests -------------------------------------------------------------------------------------------------------

include tests/tests.mk

# --- bench -------------------------------------------------------------------------------------------------------

BENCH_SRC := $(wildcard bench/*.c)
BENCH_BIN := $(BENCH_SRC:bench/%.c=$(B)/bench/%)

$(B)/bench/%: bench/%.c $(wildcard bench/*.h) $(SO)
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(EX_LIBS) -lm -pthread

bench: $(BENCH_BIN)
	$(Q).ci/deps bench
	$(Q)$(PYTHON) bench/run.py

bench-%: $(BENCH_BIN)
	$(Q).ci/deps bench
	$(Q)$(PYTHON) bench/run.py $*

# --- install -----------------------------------------------------------------------------------------------------

install: lib
	install -d $(DESTDIR)$(PREFIX)/include/dsec $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/dsec/
	install -m 755 $(SO) $(DESTDIR)$(LIBDIR)/libdsec.so.$(VERSION)
	ln -sf libdsec.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libdsec.so.$(SOVERSION)
	ln -sf libdsec.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libdsec.so
	sed $(PC_EDIT) lib/libdsec.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/libdsec.pc
	for s in 3 7; do install -d $(DESTDIR)$(PREFIX)/share/man/man$$s; install -m 644 man/*.$$s $(DESTDIR)$(PREFIX)/share/man/man$$s/; done

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/dsec
	rm -f $(DESTDIR)$(LIBDIR)/libdsec.so* $(DESTDIR)$(LIBDIR)/pkgconfig/libdsec.pc
	for s in 3 7; do for p in man/*.$$s; do rm -f $(DESTDIR)$(PREFIX)/share/man/man$$s/$$(basename $$p); done; done

clean:
	rm -rf $(B)
