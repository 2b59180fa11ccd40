package investigate_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/investigate"
)

// TestWebDatabaseAndModel asks the web and a database, and has a model write.
func TestWebDatabaseAndModel(t *testing.T) {
	site, models := webtest.New(t, webtest.Biotech()), llmtest.NewServer(t, webtest.Obedient)
	file := filepath.Join(t.TempDir(), "startups.sqlite")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE startups (name TEXT, city TEXT); INSERT INTO startups VALUES ('Nova Edit', 'Boston')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"SEARXNG_URL": site.SearchURL(), "MARCHWARDEN_FETCH_ALLOW": "127.0.0.0/8", "OPENAI_BASE_URL": models.URL() + "/v1",
		"ARXIV_URL": "http://127.0.0.1:1", "ARXIV_SITE": "http://127.0.0.1:1", "OPENALEX_URL": "http://127.0.0.1:1", "CROSSREF_URL": "http://127.0.0.1:1", "SEMANTIC_SCHOLAR_URL": "http://127.0.0.1:1",
	}
	home := t.TempDir()
	inv := open(t, investigate.Config{Home: home, Online: true, Search: "searxng", DB: file, Model: "openai/gpt-test", Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	res := ask(t, inv, webtest.Startups)
	for _, name := range []string{"web", "database"} {
		if !slices.Contains(asked(res), name) {
			t.Errorf("%s is not among %v", name, asked(res))
		}
	}
	if !strings.Contains(res.CostMetadata.ModelID, "gpt-test") || len(res.Citations) == 0 {
		t.Errorf("model %q, %d citations", res.CostMetadata.ModelID, len(res.Citations))
	}
}
