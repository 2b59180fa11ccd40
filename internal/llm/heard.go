package llm

import (
	"cmp"
	"net/http"
	"strings"
)

// Heard is what of a reply has come in.
type Heard struct {
	Finish  string          // why the reply ended, in the provider's word; "" while it has not
	Model   string          // who answers, as it calls itself; "" if it does not say
	Refusal strings.Builder // what the model says in place of an answer

	wire           *Wire
	call           Call
	opened         bool // the call has cost something
	text, thoughts strings.Builder
	calls          []*heardCall
	slots          map[int64]*heardCall // by the index that pieces name

	counted              bool
	in, out, read, write int64 // tokens, as the provider counts them
}

type heardCall struct {
	id, name string
	input    strings.Builder
}

// mostHeard is the longest text of a reply that a caller reads along, in bytes.
const mostHeard = 64 << 10

// Say adds a piece of the answer's text, which the caller of the call may read along, without the secrets.
func (h *Heard) Say(piece string) {
	h.text.WriteString(piece)
	if h.call.Heard != nil && strings.Contains(piece, "}") && h.text.Len() <= mostHeard {
		h.call.Heard(h.wire.hide.Text(h.text.String()))
	}
}

// Think adds thoughts. They are no part of the answer, but they are signs of work and are paid for.
func (h *Heard) Think(piece string) { h.thoughts.WriteString(piece) }

// CallPiece adds a piece of a tool call. Pieces belong together by their index; where all have the same, a new
// id begins a new call.
func (h *Heard) CallPiece(index int64, id, name, input string) {
	slot := h.slots[index]
	if slot == nil || id != "" && slot.id != "" && id != slot.id {
		slot = &heardCall{}
		if h.slots == nil {
			h.slots = map[int64]*heardCall{}
		}
		h.slots[index] = slot
		h.calls = append(h.calls, slot)
	}
	slot.id, slot.name = cmp.Or(slot.id, id), cmp.Or(slot.name, name)
	slot.input.WriteString(input)
}

// Count notes what the provider has counted so far, which only grows: all input, cached included, and all output.
func (h *Heard) Count(in, out, read, write int64) {
	const most = 1 << 40
	h.counted = true
	h.in, h.out = max(h.in, min(in, most)), max(h.out, min(out, most))
	h.read, h.write = max(h.read, min(read, most)), max(h.write, min(write, most))
}

// Complaint is the fault that a part of a reply stands for, or nil if it is none.
func (h *Heard) Complaint(data []byte, header http.Header) error {
	c, ok := complaintIn(data)
	if !ok {
		return nil
	}
	h.opened = h.text.Len()+h.Refusal.Len()+h.thoughts.Len()+len(h.calls) > 0 || h.counted
	return h.wire.refused(c.status(), c, header)
}

// Foreign is the fault of an answer that is not of the provider's protocol.
func (h *Heard) Foreign() error {
	h.opened = false
	return h.wire.foreign()
}

// Reply is what was heard, without why it ended.
func (h *Heard) Reply() Reply {
	r := Reply{Text: h.text.String(), Usage: h.usage()}
	for _, c := range h.calls {
		r.Calls = append(r.Calls, ToolCall{Name: c.name, Input: ToolInput(c.input.String())})
	}
	return r
}

// Lost is the reply of a call that failed: what it has cost.
func (h *Heard) Lost() Reply {
	if !h.opened {
		return Reply{}
	}
	return Reply{Usage: h.usage()}
}

// usage is what the call consumed. A provider's numbers are believed up to four times the estimate and 100,000 of
// input, twice MaxTokens and 1,000 of output; what is missing is estimated, so that no call is free.
func (h *Heard) usage() Usage {
	guess, most := Estimate(h.call), max(h.call.MaxTokens, 1)
	u := Usage{In: within(h.in, 4*guess+100_000), Out: within(h.out, 2*most+1000)}
	if u.In == 0 {
		u.In = guess
	}
	u.CacheRead = within(h.read, u.In)
	u.CacheWrite = within(h.write, u.In-u.CacheRead)
	if u.Out == 0 || h.Finish == "" { // the count at a stream's start is a placeholder
		said := EstimateText(h.text.String()) + EstimateText(h.Refusal.String()) + EstimateText(h.thoughts.String())
		for _, c := range h.calls {
			said += EstimateText(c.name) + EstimateText(c.input.String())
		}
		u.Out = max(u.Out, min(said, most))
	}
	return u
}

// within clamps a number of tokens that a provider reports.
func within(n int64, most int) int { return int(min(max(n, 0), int64(most))) }
