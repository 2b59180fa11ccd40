# Building and testing need no make: see the README. This is for what takes longer.

.PHONY: torture
torture: ## kill, fault and crowd researches at every point; takes half an hour to an hour
	.ci/torture.sh
