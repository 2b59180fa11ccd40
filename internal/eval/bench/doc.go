// Package bench measures what the program does often, beside the plainest thing
// that does the same, in one run on one machine. It owns the made-up text that is
// measured on, the baselines and the page of results, docs/performance.md, which
// `make bench` writes. It holds tests only and is part of no program.
//
// Ratios are what counts: absolute numbers say more about the machine. No test
// fails by the clock; TestRatios compares times of the same run, with room.
package bench
