package submit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
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
