package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/jet"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scale"
)

// planned runs 'cluster plan'.
func planned(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	a := world(t, nil)
	var out, errs bytes.Buffer
	a.stdout, a.stderr = &out, &errs
	code = run(t.Context(), a, append([]string{"cluster", "plan"}, args...))
	return code, out.String(), errs.String()
}

// The commands that docs/scale.md names print the tables below them.
func TestPlansOfThePage(t *testing.T) {
	plans := regexp.MustCompile("(?s)```\nmarchwarden cluster plan([^\n]*)\n```\n\n<!-- (\\w+) -->\n(.*?)<!-- end of").FindAllStringSubmatch(packagingFile(t, "docs/scale.md"), -1)
	var names []string
	for _, m := range plans {
		names = append(names, m[2])
		code, out, errs := planned(t, append(strings.Fields(m[1]), "--json")...)
		if code != exitOK {
			t.Errorf("%s: exit %d: %s", m[2], code, errs)
			continue
		}
		var table scale.Table
		if err := json.Unmarshal([]byte(out), &table); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m[3], table.Markdown()); diff != "" {
			t.Errorf("marchwarden cluster plan%s does not print what the page says (-page +printed):\n%s", m[1], diff)
		}
	}
	if got := strings.Join(names, " "); got != "target shipped tenfold" {
		t.Errorf("the page has commands for the plans %q", got)
	}
}

// What is planned without a word is what hubs do without one.
func TestPlanBeginsAsShipped(t *testing.T) {
	l := scale.Target().AsShipped()
	days := func(d time.Duration) float64 { return d.Hours() / 24 }
	keep := jet.Keep{}.Complete()
	if l.LogDays != days(keep.Log) || l.TaskDays != days(keep.Task) || l.DoneDays != days(keep.Done) || l.Evidence != blobsOwn || l.Slots != defaultSlots || l.PISlots != defaultPISlots {
		t.Errorf("a plan keeps %g, %g and %g days, evidence in %s, with %d and %d slots", l.LogDays, l.TaskDays, l.DoneDays, l.Evidence, l.Slots, l.PISlots)
	}
	code, out, errs := planned(t)
	if title, _, _ := strings.Cut(out, "\n"); code != exitOK || !strings.Contains(title, "evidence in jetstream; log kept 7 d, tasks 14 d, ends 30 d") {
		t.Errorf("exit %d: %s%s", code, title, errs)
	}
}

// What is wrong is said of the flag that says it.
func TestPlanRefusals(t *testing.T) {
	for flag, values := range map[string][]string{
		"--rihlas": {"0", "NaN"}, "--peak": {"0"}, "--per-investigation": {"0"}, "--calls": {"-1"}, "--pages": {"-1"}, "--seconds": {"0"}, "--hosts": {"0"}, "--slots": {"0"},
		"--pi-slots": {"0"}, "--hubs": {"2"}, "--hub-memory": {"1kB", "much", ""}, "--hub-disk": {"1kB", "-1GB"}, "--keep-log": {"1s", "long", ""}, "--keep-task": {"36500d"}, "--keep-done": {"1"},
		"--evidence": {"tape"}, "--shards": {"0"},
	} {
		for _, value := range values {
			if code, out, errs := planned(t, flag+"="+value); code != exitUsage || out != "" || !strings.Contains(errs, flag+": must be") {
				t.Errorf("%s=%s: exit %d, %s", flag, value, code, errs)
			}
		}
	}
}
