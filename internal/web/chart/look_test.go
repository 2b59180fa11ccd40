package chart

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestLook writes a page with all charts to the file that MARCHWARDEN_TEST_LOOK names,
// for those who want to see them.
func TestLook(t *testing.T) {
	to := os.Getenv("MARCHWARDEN_TEST_LOOK")
	if to == "" {
		t.Skip("MARCHWARDEN_TEST_LOOK names no file")
	}
	for _, theme := range []string{"light", "dark"} {
		var b strings.Builder
		b.WriteString(`<!DOCTYPE html><html lang="en" data-theme="` + theme + `"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>body{margin:0 auto;padding:1rem;max-width:60rem;font:1rem/1.5 system-ui}[data-theme=dark] body{background:#14171a;color:#e6e8eb}` + Style + `</style><title>charts</title>`)
		for _, c := range []Chart{
			Share("", sampleStages), Reliability(sampleCalibration()), Use("", sampleBudgets(12)), Use("", sampleBudgets(400)),
			Lanes(sampleRun(9, time.Second, true)), Lanes(sampleRun(3, 40*time.Minute, false)), Bars("", sampleCosts(14, 4)), Bars("", []Cost{{began, "a", nil}, {began, "b", usd(0.0021)}}), Lanes(Timeline{}), Bars("", sampleCosts(45, 9)), Lanes(sampleRun(60, 11*time.Millisecond, false)),
		} {
			b.WriteString(string(c.Figure()))
		}
		if err := os.WriteFile(strings.TrimSuffix(to, ".html")+"-"+theme+".html", []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
