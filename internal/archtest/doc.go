// Package archtest holds the rules of the house as tests: who may import whom,
// which package owns which third-party module, what enters through the command
// only, how large a file, a function or a package may get, and which words a
// comment does without.
//
// It has no code of its own. The tables in table_test.go are what to read and
// what to change; the tests parse the source tree and need neither the network
// nor the go command. Every failure says what to do about it. Whether the code
// is right is for the other tests to say.
package archtest
