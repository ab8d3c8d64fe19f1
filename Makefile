# Two commands: `make train` and `make test`. Each makes .venv first when it is missing.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
INSTALL = @if $(RUN) -m uv --version >/dev/null 2>&1; then \
	    $(RUN) -m uv pip install --quiet --python $(RUN) \
	        --constraint constraints.txt --editable $(1); \
	else \
	    $(RUN) -m pip install --quiet --constraint constraints.txt --editable $(1); \
	fi

.PHONY: setup train kernels test bounds coverage test-all gpu oldest test-oldest newest lint lint-page format-page tables docs ladder faults signatures integrations seeds clean

setup: $(VENV)/.installed

# uv where it can be had (seconds), plain pip otherwise. constraints.txt keeps torch at a CPU build.
$(RUN):
	$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet uv 2>/dev/null || echo "no uv here, using pip"

$(VENV)/.installed: pyproject.toml constraints.txt | $(RUN)
	$(call INSTALL,'.[dev]')
	@touch $@ $(VENV)/.train

# What training and playing against the agent need, without PyTorch. (A comma would end an
# argument of `call`.)
FOR_TRAINING := '.[train,play]'
WITH_GPU := '.[dev,gpu]'
$(VENV)/.train: pyproject.toml constraints.txt | $(RUN)
	$(call INSTALL,$(FOR_TRAINING))
	@touch $@

# Options: make train ARGS="--players 4 --name four"
train: $(VENV)/.train
	$(RUN) train.py $(ARGS)

# Neighbours run in one process, which compiles and computes what they share once.
TOGETHER := -n auto --dist worksteal

test: setup
	$(RUN) -m pytest $(TOGETHER) -m "not slow" --durations=25 $(ARGS)

# Compiled once, on all cores, the longest first: two workers of the tests would compile it twice.
kernels: setup
	$(VENV)/bin/carolus warmup training value:2p ppo:2p search:2p planner mcts turns batch evaluation \
	    aec gym vector greedy

# The quick tests with every index of a kernel checked, in kernels of their own: some at a time by
# make bounds ARGS="tests/test_game.py tests/test_batch.py"
bounds: export NUMBA_BOUNDSCHECK = 1
bounds: export NUMBA_CACHE_DIR = $(CURDIR)/build/bounds
bounds: setup
	$(RUN) -m pytest $(TOGETHER) -m "not slow" $(ARGS)

# Which lines of Python the quick tests run; kernels are machine code, and left out.
coverage: setup
	$(MAKE) test ARGS=--cov

test-all: setup
	$(call INSTALL,$(WITH_GPU))
	$(RUN) -m pytest $(TOGETHER) --durations=25 $(ARGS)

# On a machine with an NVIDIA GPU: games on it are compared with the CPU's, then measured.
gpu: setup
	$(call INSTALL,$(WITH_GPU))
	$(RUN) tests/on_gpu.py --libraries
	$(RUN) -m benchmarks.gpu $(ARGS)

# First steps of every interface, agent and learner, in an environment of other versions (by uv).
# Compiled code is its own, and not optimised: that takes half of the time.
define FIRST_STEPS
	$(2) NUMBA_OPT=0 NUMBA_CACHE_DIR=$(CURDIR)/$(1)/first PYTHONPATH=. $(1)/bin/python tests/first_steps.py
	$(2) NUMBA_DISABLE_JIT=1 PYTHONPATH=. $(1)/bin/python tests/first_steps.py
endef

# The oldest versions that pyproject.toml allows and this Python has.
OLDEST := .venv-oldest
test-oldest: export NUMBA_CACHE_DIR = $(CURDIR)/$(OLDEST)/kernels

oldest: $(OLDEST)/.installed
	$(call FIRST_STEPS,$(OLDEST))

test-oldest: oldest
	$(OLDEST)/bin/python -m pytest $(TOGETHER) -m "not slow" --durations=25 $(ARGS)

# torch first: the lowest version of the pinned one is not the CPU build.
$(OLDEST)/.installed: $(VENV)/.installed
	$(RUN) -m uv venv --quiet --clear --python $(RUN) $(OLDEST)
	$(RUN) -m uv pip install --quiet --python $(OLDEST) --constraint constraints.txt torch
	$(RUN) -m uv pip install --quiet --python $(OLDEST) --constraint constraints.txt \
	    --resolution lowest-direct --only-binary :all: --no-binary carolus-env --editable '.[dev]'
	@touch $@

# The newest Python on this machine and the newest versions of all but PyTorch, where whatever
# warns that it will change is an error: `make newest ARGS=all` runs all tests, and takes PyTorch
# with gigabytes of CUDA where this Python has no other; NEWEST_PYTHON is another interpreter.
NEWEST_PYTHON ?= $(shell for minor in 14 13 12 11; do \
    for python in python3.$$minor $(HOME)/.pyenv/versions/3.$$minor.*/bin/python; do \
        "$$python" -c "import sys; print(sys.executable)" 2>/dev/null && exit; done; done)
ifneq ($(filter newest,$(MAKECMDGOALS)),)
NEWEST := .venv-newest-$(shell $(NEWEST_PYTHON) -c "import platform as p; print(p.python_version())")
endif
STRICT := PYTHONWARNINGS=error::DeprecationWarning,error::PendingDeprecationWarning,error::FutureWarning
# PettingZoo's own tests import its games in the way that it calls old.
ALLOWED := "ignore:The old environment creation API:DeprecationWarning"
ALL_TESTS = NUMBA_CACHE_DIR=$(CURDIR)/$(NEWEST)/kernels \
    $(NEWEST)/bin/python -m pytest -W $(ALLOWED) $(TOGETHER)

newest: $(NEWEST)/.installed$(ARGS)
	$(if $(ARGS),$(STRICT) $(ALL_TESTS) --durations=25,$(call FIRST_STEPS,$(NEWEST),$(STRICT)))

$(NEWEST)/.installed$(ARGS): $(VENV)/.installed
	$(RUN) -m uv venv --quiet --clear --seed --no-python-downloads --python $(NEWEST_PYTHON) $(NEWEST)
	@touch $(NEWEST)/left-out
	@if [ -z "$(ARGS)" ] && $(RUN) -m uv pip install --dry-run --python $(NEWEST) \
	        --constraint constraints.txt torch 2>&1 | grep -q nvidia; then \
	    printf '%s; python_version < "3"\n' torch stable-baselines3 sb3-contrib \
	        > $(NEWEST)/left-out; \
	fi
	$(RUN) -m uv pip install --quiet --python $(NEWEST) --constraint constraints.txt \
	    --override $(NEWEST)/left-out --editable '.[dev]'
	@touch $@

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports --no-cache --no-logo
	@$(MAKE) --no-print-directory lint-page

# The page's JavaScript: formatted and checked by Biome, its types by TypeScript. npx brings both.
BIOME := npx --yes @biomejs/biome@2.6.8
TSC := npx --yes --package typescript@7.0.2 tsc --allowJs --checkJs --noEmit --strict false \
    --target es2022 --module es2022 --moduleResolution bundler --lib es2023,dom,dom.iterable
SCRIPTS := carolus_env/play/static

lint-page:
	@if { $(BIOME) --version && $(TSC) --version; } >/dev/null 2>&1; then \
	    $(BIOME) check --error-on-warnings $(SCRIPTS) && $(TSC) $(SCRIPTS)/*.js; \
	else \
	    echo "The page's JavaScript was not checked: npx is missing, or cannot fetch its tools"; \
	fi

# Formats it, and mends what can be mended without a decision.
format-page:
	$(BIOME) check --write $(SCRIPTS)

ladder: setup
	$(RUN) -m benchmarks.ladder $(ARGS)

# Which test finds each planted fault.
faults: setup
	$(RUN) tests/faults.py $(ARGS)

signatures: setup
	$(RUN) tests/signatures.py $(ARGS)

# Tables and pictures of docs/ that are made from the code and from benchmarks/results.json.
tables: setup
	$(RUN) docs/tables.py
	$(RUN) docs/images.py

# The site, in build/site. It fails for a broken link or anchor and a public name without docstring.
docs: $(VENV)/.documents
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict $(ARGS)

$(VENV)/.documents: $(VENV)/.installed
	$(call INSTALL,'.[docs]')
	@touch $@

# Other libraries, each in a virtual environment of its own: make integrations ARGS="torchrl skrl"
integrations: setup
	$(RUN) tests/integrations.py $(ARGS)

# Short runs of every learner with eight seeds: none may fail or lag behind.
seeds: setup
	$(RUN) -m benchmarks.seeds $(ARGS)

clean:
	rm -rf $(VENV) $(OLDEST) .venv-newest-* .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
