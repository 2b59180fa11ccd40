package evidence

import (
	"strings"
	"testing"
)

// found are the passages of a text that are no headings, each with its path.
func found(t *testing.T, text string, earlier bool) string {
	set := &Set{Earlier: earlier}
	read, err := set.Read(t.Context(), text)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, p := range read.passages {
		if p.IsHeading {
			continue
		}
		var units []string
		for _, s := range p.Sentences {
			units = append(units, strings.Join(strings.Fields(text[s.Start:s.End]), " "))
		}
		out = append(out, p.Path+" > "+strings.Join(p.Columns, ",")+" > "+strings.Join(units, " / "))
	}
	return strings.Join(out, "\n")
}

// What manuals explain, settings, lists of contents and tables with short rows or years are read as such, and as before
// by earlier rules.
func TestParts(t *testing.T) {
	for name, c := range map[string]struct{ text, want, before string }{
		"options": {"# OPTIONS\n\n       -d, --delete\n\t   Delete a password. It is empty then.\n\n       -l, --lock\n\n\t   Lock the password.\n\n       All of them need root.\n",
			"OPTIONS › -d, --delete >  > -d, --delete / Delete a password. / It is empty then.\nOPTIONS › -l, --lock >  > -l, --lock / Lock the password.\nOPTIONS >  > All of them need root.",
			"OPTIONS >  > -d, --delete\nOPTIONS >  > Delete a password. / It is empty then.\nOPTIONS >  > -l, --lock\nOPTIONS >  > Lock the password.\nOPTIONS >  > All of them need root."},
		"a signature": {"It is fixed now.\n\n -- Ann Bee <ann@example.org>  Mon, 6 May 2024\n\n  The next one.\n",
			" >  > It is fixed now.\n >  > -- Ann Bee <ann@example.org> Mon, 6 May 2024\n >  > The next one.",
			" >  > It is fixed now.\n-- Ann Bee <ann@example.org>  Mon, 6 May 2024 >  > The next one."},
		"settings": {"port: 8087       # nginx in front listens on 443\nworkers: 3       # more than four makes the box swap\nlimit = 6\n",
			" >  > port: 8087 # nginx in front listens on 443 / workers: 3 # more than four makes the box swap / limit = 6", ""},
		"no setting": {"Decided: the gate stays. It is painted green.\n", " >  > Decided: the gate stays. / It is painted green.", ""},
		"contents": {"# Rules\n\n- Who can vote?\n- Fines\n\n## Who can vote?\n\nAll members can.\n\n## Fines\n\nTen pence a day.\n",
			"Rules › Who can vote? >  > All members can.\nRules › Fines >  > Ten pence a day.", ""},
		"short rows": {"name | born | died\nAda | 1815-12-10 | 1852-11-27\nTim | 1955-06-08\n",
			" > name,born,died > Ada | 1815-12-10 | 1852-11-27 / Tim | 1955-06-08", ""},
		"years":    {"item | 2023 | 2024\nrent | 900 | 950\n", " > item,2023,2024 > rent | 900 | 950", " >  > item | 2023 | 2024 / rent | 900 | 950"},
		"no names": {"Ada | 1815\nTim | 1955\n", " >  > Ada | 1815 / Tim | 1955", " >  > Ada | 1815 / Tim | 1955"},
	} {
		if got := found(t, c.text, false); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
		if got := found(t, c.text, true); c.before != "" && got != c.before {
			t.Errorf("%s by earlier rules: got\n%s\nwant\n%s", name, got, c.before)
		}
	}
}
