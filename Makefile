# Everything starts here: `make demo`, `make test`. Only python3 (3.11 or newer) and make are needed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

TABLES := losses miners rho samplers methods own_losses_carried_on tune_losses
TABLES_CUB := cub cub_heads methods_cub few_classes recipe_cub
BENCHES := losses eval loop samplers chunks hist embed scale plan input study report saliency cluster kills runs cli classical
CUB ?= $(NEARKIN_CUB)

.PHONY: install demo screenshots test lint format test-slow kills imports settings catalogue inventory results twins differences analyses analyses-cub validation tune-cub clean $(BENCHES:%=bench-%) $(TABLES:%=table-%) $(TABLES_CUB:%=table-%)

install: $(READY)

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing nearkin and its dependencies into .venv (a few minutes, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,pretrained,tensorboard,tune,ray,heic]'
	@touch $@

demo: $(READY)
	@$(BIN)/nearkin demo --workers 2

# docs/images/report: the demo's page in a headless Chromium (needs `chromium`), on a desktop, a phone and in the dark
screenshots: $(READY)
	@$(BIN)/nearkin demo --workers 2
	@$(BIN)/nearkin analyse spectrum demo
	@$(BIN)/nearkin report demo
	@$(BIN)/python examples/screenshots.py report.html docs/images/report

lint: $(READY)
	@$(BIN)/ruff format --check --quiet src tests bench examples || { echo "make format: some files are not formatted"; exit 1; }
	@$(BIN)/ruff check src tests bench examples
	@$(BIN)/mypy

format: $(READY)
	@$(BIN)/ruff format src tests bench examples
	@$(BIN)/ruff check --fix src tests bench examples

test: lint
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

# docs/settings.md, from the settings and docstrings in the code
settings: $(READY)
	@$(BIN)/python -m nearkin.config.page > docs/settings.md

# src/nearkin/config/catalogue.json, what `nearkin list` and `nearkin explain` read, from the same
catalogue: $(READY)
	@$(BIN)/python -m nearkin.config.describe

# docs/results/*.json from the runs of stored studies (make table-losses), and the tables of docs/*.md from these files
results: $(READY)
	@$(BIN)/python examples/results.py record losses
	@$(BIN)/python examples/results.py render

# the tables of docs/fidelity.md, from src/nearkin/literature/data/inventory.json
inventory: $(READY)
	@$(BIN)/python examples/inventory.py

# every published table's twin in small: glyphs, one seed, one epoch, four images per class; interrupted, it goes on
twins: $(READY)
	@OMP_NUM_THREADS=1 $(BIN)/python examples/twins.py run --workers 2

# the list in docs/fidelity.md of what twins do otherwise on purpose, from their files
differences: $(READY)
	@$(BIN)/python examples/twins.py render

# which room imports from which, and through how many files
imports: $(READY)
	@$(BIN)/python tests/test_architecture.py

# docs/first-hour.md: the transcript of a newcomer's hour
first-hour: $(READY)
	@$(BIN)/python examples/first_hour.py > docs/first-hour.md

# a study, two searches and a choice, each killed thirty times: about an hour
kills: $(READY)
	@$(BIN)/python -m pytest -n 0 -m slow tests/studies/test_thirty_kills.py

# minutes of real training, real CUB images (NEARKIN_CUB=DIR), evaluation at the size of SOP
test-slow: $(READY)
	@$(BIN)/python -m pytest -m slow

# the tables of docs/: studies/NAME.yaml; interrupted ones go on
$(TABLES:%=table-%): table-%: $(READY)
	@$(BIN)/nearkin study studies/$*.yaml --workers 2

# CUB=DIR: the folder of CUB-200-2011
$(TABLES_CUB:%=table-%): table-%: $(READY)
	@test -n "$(CUB)" || { echo "make $@ CUB=DIR: the folder of CUB-200-2011"; exit 2; }
	@$(BIN)/nearkin study studies/$*.yaml root=$(CUB) --workers 2

# docs/analyses.md: what the losses have learned; tables, numbers and figures in analyses/. Interrupted, it goes on
analyses: $(READY)
	@$(BIN)/nearkin study studies/analyses.yaml --workers 2
	@$(BIN)/nearkin study studies/regularisers.yaml --workers 2
	@$(BIN)/nearkin analyse weights -o analyses
	@$(BIN)/nearkin analyse saliency,similarity,properties,corruptions,spectrum,activation analyses -o analyses/glyphs
	@$(BIN)/nearkin analyse spectrum regularisers -o analyses/regularisers

analyses-cub: $(READY)
	@test -n "$(CUB)" || { echo "make $@ CUB=DIR: the folder of CUB-200-2011"; exit 2; }
	@$(BIN)/nearkin study studies/analyses_cub.yaml root=$(CUB) --workers 2
	@$(BIN)/nearkin analyse similarity,spectrum,activation,saliency,corruptions analyses_cub -o analyses/cub

# docs/validation.md: what predicts the test; trains, goes on where it was interrupted, and writes the tables
validation: $(READY)
	@test -n "$(CUB)" || { echo "make $@ CUB=DIR: the folder of CUB-200-2011"; exit 2; }
	@OMP_NUM_THREADS=1 $(BIN)/python examples/validation.py measure studies/validation_cub.yaml root=$(CUB)
	@OMP_NUM_THREADS=1 $(BIN)/python examples/validation.py measure studies/validation_glyphs.yaml
	@$(BIN)/python examples/validation_tables.py record validation_cub validation_glyphs
	@$(BIN)/python examples/validation_tables.py render

# docs/tuning.md: three losses, 20 trials each, against their default settings
tune-cub: $(READY)
	@test -n "$(CUB)" || { echo "make $@ CUB=DIR: the folder of CUB-200-2011"; exit 2; }
	@$(BIN)/nearkin study studies/tune_cub.yaml root=$(CUB) --workers 2

# against pytorch-metric-learning, the bare matrix product, a minimal loop, a smaller batch, ProxyAnchor; bench-cli:
# CPU seconds of commands that should start at once
$(BENCHES:%=bench-%): bench-%: $(READY)
	@OMP_NUM_THREADS=1 $(BIN)/python bench/$*.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
