package httpdoor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// The file of sessions holds those of the local user, so that an open page works on after a
// restart: the hash of each id, and when it ends. Members of a team sign in again.
const (
	keptWhat  = "sessions of the page"
	keptBytes = 1 << 20
	mostKept  = 1000
)

func keptName(id string) string {
	sum := sha256.Sum256([]byte("marchwarden session\x00" + id))
	return hex.EncodeToString(sum[:])
}

// formOf is what the forms of a session carry. It follows from the id alone.
func formOf(id string) string {
	sum := sha256.Sum256([]byte("marchwarden form\x00" + id))
	return hex.EncodeToString(sum[:])
}

// keep writes a session into the file, or takes it out if end is zero. A file that cannot be
// written costs nothing but a new link after a restart.
func (g *SignIn) keep(id string, end time.Time) {
	if g.cfg.Kept == "" || g.team() {
		return
	}
	now := g.cfg.Now()
	err := durable.EditPrivate(g.cfg.Kept, keptWhat, keptBytes, func(old []byte, _ bool) ([]byte, error) {
		kept := map[string]time.Time{}
		_ = json.Unmarshal(old, &kept) // what cannot be read is made anew
		maps.DeleteFunc(kept, func(_ string, end time.Time) bool { return now.After(end) || len(kept) >= mostKept })
		if delete(kept, keptName(id)); !end.IsZero() {
			kept[keptName(id)] = end
		}
		return json.Marshal(kept)
	})
	if err != nil {
		g.cfg.Log.Warn("browsers are forgotten when this program ends", "error", err)
	}
}

// remembered is a session of an earlier process, or nil.
func (g *SignIn) remembered(id string) *session {
	if g.cfg.Kept == "" || g.team() || id == "" {
		return nil
	}
	text, err := durable.ReadPrivate(g.cfg.Kept, keptWhat, keptBytes)
	kept := map[string]time.Time{}
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return nil
	}
	end, ok := kept[keptName(id)]
	if !ok || !g.cfg.Now().Before(end) {
		return nil
	}
	return g.sessions.get(id, func() *session { return &session{id: id, form: formOf(id), end: end} })
}
