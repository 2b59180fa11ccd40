package settings

import (
	"net/url"
	"os"
	"strings"
)

// Row is a setting as 'doctor' shows it. Fields are only ever added.
type Row struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Env    string `json:"env"`
}

// Rows are all settings as people may see them: secrets are masked.
func (c *Settings) Rows() []Row {
	var rows []Row
	for _, s := range All {
		v := c.Values[s.Name]
		shown := strings.Join(v.Texts, string(os.PathListSeparator))
		if s.Secret {
			shown = masked(shown)
		}
		if s.Personal && shown != "" { // an address may end in its password
			shown = masked(".")
		}
		if u, err := url.Parse(shown); s.Kind == Address && err == nil {
			shown = u.Redacted()
		}
		if shown == "" {
			shown = "not set"
		}
		rows = append(rows, Row{Name: s.Name, Value: shown, Origin: v.Origin, Env: s.Env})
	}
	return rows
}

// masked hides a secret. The last four characters of a long one stay, so that
// two keys can be told apart.
func masked(secret string) string {
	const longEnough, shown = 12, 4
	switch r := []rune(secret); {
	case len(r) == 0:
		return ""
	case len(r) > longEnough:
		return "…" + string(r[len(r)-shown:])
	}
	return "…"
}
