package web

// Count is how many clients there are.
func (s *Streams) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients
}

// Event is an event as it goes over the wire.
func Event(name, id string, data []byte) []byte { return event(name, id, data) }
