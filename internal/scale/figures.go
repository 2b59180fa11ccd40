// Package scale says what a cluster of so many hosts needs for so many questions, and
// what gives way first when there are more: a simulation, with the same result for the
// same seed, from figures that were measured. It runs nothing and measures nothing.
package scale

// Figure is something that was measured, or assumed where the source says so.
type Figure struct {
	What   string
	Value  float64
	Unit   string
	Source string
}

// The sources.
const (
	ours     = "2026-11-16: three hubs, one worker, 60 investigations with 60 rihlas of the embedded mind, strace, /proc; 2 processors under load 13"
	filled   = "2026-11-16: the same hubs, 578,000 subjects of 80 bytes put into one stream"
	crowded  = "2026-11-16: the same hubs, 128 writers on one stream for 6 to 75 s, 600 bytes each"
	research = "2026-11-16: rihlas with a model on loopback, 10 paid calls and 3 pages each"
	pages    = "2026-11-16: 205 pages of two public sets for readability, zstd as package form does it"
	spike    = "2026-11: a model of 200 hosts on the bare server, before there was a cluster of ours"
	assumed  = "assumed"
	rounded  = "assumed, as large clouds and providers list it, rounded"
)

// The figures. What is in bytes is as stored, with the server's overhead.
var (
	logMessage     = Figure{"a message of the log", 807, "B", ours}
	taskMessage    = Figure{"a task, handed in", 491, "B", ours}
	doneMessage    = Figure{"an end", 667, "B", ours}
	subjectMemory  = Figure{"memory of a hub for a subject that is kept", 203, "B", filled}
	hubMemory      = Figure{"memory of a hub that has nothing", 66e6, "B", ours}
	writtenTwice   = Figure{"bytes to the disk for a byte stored", 5.9, "", ours}
	flushes        = Figure{"flushes for an append, of each hub, when little is going on", 0.79, "", ours}
	flushesAtMost  = Figure{"flushes that a hub makes, however many appends wait for one", 380, "/s", crowded}
	appendsAtMost  = Figure{"appends to one stream, three times and flushed", 6000, "/s", crowded}
	linesOfRihla   = Figure{"lines of a rihla with 10 calls and 3 pages", 35, "", research}
	controlEntries = Figure{"entries of the log for a task besides its lines: claim and end", 2, "", ours}
	linesOfPI      = Figure{"lines of an investigation with one rihla", 15, "", ours}
	pageStored     = Figure{"a page of 101 kB, compressed", 20171, "B", pages}
	linesOfPage    = Figure{"lines for one page more", 2, "", assumed}
	linesOfSent    = Figure{"lines of an investigation for one rihla more", 5, "", assumed}
	otherBlob      = Figure{"any other document: a text, a reply, a result", 4000, "B", assumed}
	otherBlobs     = Figure{"documents of a task besides pages, their texts and replies", 4, "", assumed}
	claims         = Figure{"changes of a shared limit, by each host", 0.5, "/s", spike}
	claimsAtMost   = Figure{"changes of one shared limit that many contend for", 700, "/s", spike}
	workerMemory   = Figure{"memory of a worker", 35e6, "B", research}
)

// Prices, to compare by: put your own in their place.
var (
	hubPrice      = Figure{"a hub of 4 processors, 16 GB and 200 GB of disk, a day", 8, "$", rounded}
	workerPrice   = Figure{"a worker's host of 2 processors and 4 GB, a day", 2, "$", rounded}
	putPrice      = Figure{"a million objects put into a bucket", 5, "$", rounded}
	getPrice      = Figure{"a million objects asked for", 0.4, "$", rounded}
	keepPrice     = Figure{"a gigabyte kept for a month", 0.023, "$", rounded}
	tokensOfRihla = Figure{"tokens of a rihla", 20000, "", assumed}
	tokensPrice   = Figure{"a million tokens, read and written together", 1, "$", rounded}
)

// Figures are all of them, in the order in which they are printed.
func Figures() []Figure {
	return []Figure{
		logMessage, taskMessage, doneMessage, subjectMemory, hubMemory, writtenTwice, flushes, flushesAtMost, appendsAtMost, linesOfRihla,
		controlEntries, linesOfPI, pageStored, linesOfPage, linesOfSent, otherBlob, otherBlobs, claims, claimsAtMost, workerMemory,
		hubPrice, workerPrice, putPrice, getPrice, keepPrice, tokensOfRihla, tokensPrice,
	}
}
