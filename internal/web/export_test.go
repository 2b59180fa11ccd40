package web

// Count is how many clients there are, and how many runs are watched.
func (h *Hub) Count() (clients, runs int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients, len(h.runs)
}

// Event is an event as it goes over the wire.
func Event(name, id string, data []byte) []byte { return event(name, id, data) }
