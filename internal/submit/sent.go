package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// Sent is a task that was submitted from here, for coming back to it. Fields are only
// ever added.
type Sent struct {
	ID       marchwarden.TraceID `json:"id"`
	Engine   string              `json:"engine"`
	Question string              `json:"question"`
	At       time.Time           `json:"at"`
}

// maxSent bounds a line of the list.
const maxSent = 16 << 10

// Remember adds the task to the list in a file.
func (s Sent) Remember(path string) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return durable.AppendLine(path, append(line, '\n'))
}

// ReadSent reads the list, newest first. Lines that cannot be read are passed over.
func ReadSent(path string) (all []Sent, err error) {
	f, err := durable.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err == nil {
		err = durable.ScanLines(f, maxSent, func(l durable.Line) {
			var s Sent
			if json.Unmarshal(l.Text, &s) == nil && s.ID.Valid() {
				all = append(all, s)
			}
		})
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, settings.Invalid(path, "", "cannot be read: "+durable.Cause(err))
	}
	slices.Reverse(all)
	return all, nil
}

// FindSent finds the task in the list that an argument means. Of a whole id it may know nothing more.
func FindSent(path, arg string, warn func(string)) (Sent, error) {
	all, err := ReadSent(path)
	id, notWhole := marchwarden.ParseTraceID(arg)
	switch {
	case notWhole == nil:
		if err != nil {
			warn("the list of what was submitted from here cannot be read: " + err.Error())
		}
		all = append(all, Sent{ID: id})
	case err != nil:
		return Sent{}, err
	case arg == "last" && len(all) == 0:
		return Sent{}, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing was submitted from here yet")
	case arg == "last":
		return all[0], nil
	default:
		id, err = run.OneID(arg, "give the whole id", fmt.Sprintf("nothing that was submitted from here begins with %q", plaintext.Clip(arg, 40)), func() (ids []marchwarden.TraceID, _ error) {
			for _, s := range all {
				ids = append(ids, s.ID)
			}
			return ids, nil
		})
		if err != nil {
			return Sent{}, err
		}
	}
	return all[slices.IndexFunc(all, func(s Sent) bool { return s.ID == id })], nil
}
