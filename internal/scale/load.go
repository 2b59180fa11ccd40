package scale

import "fmt"

// Where evidence can be kept.
const (
	InHubs = "jetstream"
	InS3   = "s3"
	InDir  = "dir"
)

// Load is how much there is to do, and what there is to do it with. Target is one.
type Load struct {
	Rihlas  float64 // a day
	Peak    float64 // how many times the mean the busiest hour has
	PerTask float64 // rihlas that an investigation sends
	Calls   float64 // of a rihla, to models and search engines
	Pages   float64 // that a rihla reads
	Seconds float64 // that a rihla takes

	Hosts   int     // that work
	Slots   int     // for rihlas, on each
	PISlots int     // for investigations, on each
	Lost    float64 // hosts that die without a word, a day

	Hubs       int     // 1 or 3, and as often everything is kept
	Shards     int     // streams that the log is cut into
	HubMemory  float64 // bytes of each
	HubDisk    float64 // bytes of each
	HubNetwork float64 // bytes a second of each

	LogDays, TaskDays, DoneDays float64 // how long each is kept
	Evidence                    string  // where documents are: InHubs, InS3 or InDir
	EvidenceDays                float64 // how long they are kept, where hubs keep them

	Seed uint64
}

// Target is a million rihlas a day on 200 hosts, set up for that.
func Target() Load {
	return Load{
		Rihlas: 1e6, Peak: 3, PerTask: 4, Calls: 15, Pages: 10, Seconds: 120,
		Hosts: 200, Slots: 32, PISlots: 16, Lost: 4,
		Hubs: 3, Shards: 1, HubMemory: 8e9, HubDisk: 200e9, HubNetwork: 125e6,
		LogDays: 2, TaskDays: 2, DoneDays: 7, Evidence: InS3, EvidenceDays: 30, Seed: 1,
	}
}

// AsShipped is l with evidence and records kept as a cluster keeps them if nobody says
// otherwise.
func (l Load) AsShipped() Load {
	l.LogDays, l.TaskDays, l.DoneDays, l.Evidence = 7, 14, 30, InHubs
	return l
}

// Times is l with m times the rihlas.
func (l Load) Times(m float64) Load { l.Rihlas *= m; return l }

// Check refuses what makes no sense. Its error begins with the flag of 'cluster plan' that
// says it, or with words for what no flag says.
func (l Load) Check() error {
	for _, f := range []struct {
		name            string
		value, from, to float64
		unit            string
	}{
		{"--rihlas", l.Rihlas, 1, 1e10, ""}, {"--peak", l.Peak, 1, 100, ""}, {"--per-investigation", l.PerTask, 1, 1000, ""}, {"--calls", l.Calls, 0, 1e4, ""},
		{"--pages", l.Pages, 0, 1e4, ""}, {"--seconds", l.Seconds, 1, 86400, ""}, {"--hosts", float64(l.Hosts), 1, 1e6, ""}, {"--slots", float64(l.Slots), 1, 4096, ""},
		{"--pi-slots", float64(l.PISlots), 1, 4096, ""}, {"hosts lost a day", l.Lost, 0, 1e6, ""}, {"--shards", float64(l.Shards), 1, 64, ""},
		{"--hub-memory", l.HubMemory, 1e8, 1e13, " bytes"}, {"--hub-disk", l.HubDisk, 1e8, 1e16, " bytes"}, {"network of a hub", l.HubNetwork, 1e5, 1e12, " bytes a second"},
		{"--keep-log", l.LogDays, 0.01, 3650, " days"}, {"--keep-task", l.TaskDays, 0.01, 3650, " days"}, {"--keep-done", l.DoneDays, 0.01, 3650, " days"},
		{"evidence in the hubs", l.EvidenceDays, 0.01, 36500, " days"},
	} {
		if !(f.value >= f.from && f.value <= f.to) {
			return fmt.Errorf("%s: must be from %g to %g%s, not %g", f.name, f.from, f.to, f.unit, f.value)
		}
	}
	if l.Hubs != 1 && l.Hubs != 3 {
		return fmt.Errorf("--hubs: must be 1 or 3, not %d", l.Hubs)
	}
	if l.Evidence != InHubs && l.Evidence != InS3 && l.Evidence != InDir {
		return fmt.Errorf("--evidence: must be %s, %s or %s", InHubs, InS3, InDir)
	}
	return nil
}

const day = 86400.0

// perSecond is the rihlas of the mean second.
func (l Load) perSecond() float64 { return l.Rihlas / day }

// tasks is how many tasks there are for a rihla: itself, and its part of an investigation.
func (l Load) tasks() float64 { return 1 + 1/l.PerTask }

// entries is the messages of the log for a rihla, with its part of the investigation.
func (l Load) entries() float64 {
	own := linesOfRihla.Value + max(0, l.Pages-3)*linesOfPage.Value + controlEntries.Value
	pi := linesOfPI.Value + (l.PerTask-1)*linesOfSent.Value + controlEntries.Value
	return own + pi/l.PerTask
}

// blobs is the documents that a rihla leaves: two for a page, which is kept as it came and
// as its text, one for a call, and a few for each task.
func (l Load) blobs() (count, bytes float64) {
	others := l.Pages + l.Calls + otherBlobs.Value*l.tasks()
	return l.Pages + others, l.Pages*pageStored.Value + others*otherBlob.Value
}

// appends is all that hubs store for a rihla: the log, the spec, the pointer and the end
// of each task, and documents if they are in the hubs.
func (l Load) appends() float64 {
	n := l.entries() + 3*l.tasks()
	if l.Evidence == InHubs {
		count, _ := l.blobs()
		n += count
	}
	return n
}

// stored is the bytes that a rihla adds to the streams of each hub.
func (l Load) stored() float64 {
	n := l.entries()*logMessage.Value + l.tasks()*(taskMessage.Value+doneMessage.Value)
	if l.Evidence == InHubs {
		_, bytes := l.blobs()
		n += bytes
	}
	return n
}

// kept is what each hub has when as much goes as comes: bytes on its disk, and subjects.
func (l Load) kept() (bytes, subjects float64) {
	tasks := l.Rihlas * l.tasks()
	bytes = l.Rihlas*l.entries()*logMessage.Value*l.LogDays + tasks*(taskMessage.Value*l.TaskDays+doneMessage.Value*l.DoneDays)
	subjects = tasks * (l.LogDays + l.TaskDays + l.DoneDays)
	if l.Evidence == InHubs {
		count, size := l.blobs()
		bytes += l.Rihlas * size * l.EvidenceDays
		subjects += l.Rihlas * count * l.EvidenceDays
	}
	return bytes, subjects
}
